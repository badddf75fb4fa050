"""How many keys of published tables a plan covers.

    python bench/planning/coverage.py FOLDER [PLATFORM]

FOLDER holds <backend>/<version>/<table>.parquet with the key columns of published tables; PLATFORM is the
one they were measured on (sm90 by default). For each file: its distinct keys, how many of them the
backend's plan has, and the values that set most of the others apart.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "workflow"))

from opatlas.catalogue import load as catalogue  # noqa: E402
from opatlas.config import datasets  # noqa: E402
from opatlas.planning.plan import OpPlan, make_plan  # noqa: E402

# Spellings of one precision.
SAME = {"fp8_e4m3": "fp8"}
Key = tuple[Any, ...]


def plans(backend: str, platform: str) -> dict[str, list[OpPlan]]:
    """Every op that a backend plans on a platform, over all its pins, by table."""
    config, cases = datasets.load(ROOT), catalogue.load(ROOT)
    tables: dict[str, list[OpPlan]] = defaultdict(list)
    for dataset in config.datasets():
        if dataset.backend == backend and dataset.platform.name == platform:
            for op in make_plan(config, cases, dataset, {}).ops:
                tables[op.op.table.name].append(op)
    return tables


def planned_keys(ops: list[OpPlan], columns: list[str]) -> set[Key]:
    keys: set[Key] = set()
    for op in ops:
        by_name = {column.name: column for column in op.op.table.columns}
        values = [
            by_name[name].values(op.columns).tolist()
            if name in by_name
            else [op.op.table.op_name] * len(op.rows)
            for name in columns
        ]
        keys.update(zip(*values, strict=True))
    return keys


def key_columns(ops: list[OpPlan], shipped: list[str]) -> list[str]:
    """The table's key, as far as plan and file both have it."""
    own = {column.name for column in ops[0].op.table.columns if column.values} | {"op_name"}
    names = [name for name in ops[0].op.table.key if name in shipped and name in own]
    several = len({op.op.table.op_name for op in ops}) > 1
    return names + (["op_name"] if several and "op_name" not in names and "op_name" in shipped else [])


def apart(missing: set[Key], planned: set[Key], columns: list[str]) -> str:
    """Values of one column that no planned key has, with how many missing keys they account for."""
    notes = []
    left = set(missing)
    for index, name in enumerate(columns):
        known = {key[index] for key in planned}
        odd = Counter(key[index] for key in left if key[index] not in known)
        if odd:
            named = ", ".join(str(value) for value, _ in odd.most_common(6))
            notes.append(f"{name} {named}{', ...' if len(odd) > 6 else ''} ({sum(odd.values())})")
            left = {key for key in left if key[index] not in odd}
    if left:
        notes.append(f"points outside the sweep ({len(left)})")
    return "; ".join(notes)


def report(folder: Path, platform: str) -> Iterator[str]:
    yield "| backend | version | table | shipped keys | covered | not planned |"
    yield "| --- | --- | --- | ---: | ---: | --- |"
    for backend in sorted(path.name for path in folder.iterdir()):
        tables = plans(backend, platform)
        for path in sorted((folder / backend).glob("*/*.parquet")):
            frame = pq.read_table(path).to_pandas()
            place = f"| {backend} | {path.parent.name} | {path.stem}"
            ops = tables.get(path.stem, [])
            if not ops:
                yield f"{place} | {len(frame.drop_duplicates())} | 0 | the op is not planned |"
                continue
            columns = key_columns(ops, list(frame.columns))
            if "num_key_value_heads" in frame:
                # Consumers read both spellings of as many KV heads as query heads as 0.
                frame.loc[frame.num_key_value_heads == frame.num_heads, "num_key_value_heads"] = 0
            shipped = {
                tuple(SAME.get(value, value) if isinstance(value, str) else value for value in key)
                for key in frame[columns].itertuples(index=False, name=None)
            }
            planned = planned_keys(ops, columns)
            covered = len(shipped & planned)
            yield f"{place} | {len(shipped)} | {covered} | {apart(shipped - planned, planned, columns)} |"


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in report(Path(sys.argv[1]), (*sys.argv[2:], "sm90")[0]))
