"""One side of a comparison: tables in a folder, published here or by somebody else."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opatlas.config.datasets import RESULTS
from opatlas.errors import Problems, UserError
from opatlas.ops.spec import Op
from opatlas.tables.merge import FAILURES
from opatlas.tables.schema import TYPES

PATTERN = set("*?[")
EXPECTED = "expected a published dataset (backend/version/platform), or a folder with <table>.parquet files"
# What a key column means where a table lacks it: consumers read it so.
ABSENT: Mapping[str, Any] = {"window_size": 0}
FURTHER = ("op_name", "kernel_source", "device", "timing_method", "latency_ci", "case_id")


class Lacking(Exception):
    """A table cannot be compared; the text says what of it is not as consumers expect."""


@dataclass(frozen=True)
class Side:
    """`name` is what it was asked for by, `tables` where each of its tables lies.

    `provenance` and `failures` are empty and None where nobody wrote them, as beside imported tables.
    """

    name: str
    folders: tuple[Path, ...]
    tables: Mapping[str, Path]

    def refuse(self, dataset: Path) -> None:
        """UserError when this baseline is that very dataset."""
        if dataset.resolve() in (folder.resolve() for folder in self.folders):
            raise UserError(
                f"baseline {self.name}: is the dataset itself; what was published before it lies in "
                f"{RESULTS}/.datasets/<backend>/<version>/<platform>-<fingerprint>"
            )

    @cached_property
    def provenance(self) -> Mapping[str, Any]:
        for folder in self.folders:
            path = folder / "provenance.json"
            if path.exists():
                return _document(path)
        return {}

    @cached_property
    def failures(self) -> pa.Table | None:
        """The columns op, group and class of the failed cases."""
        for folder in self.folders:
            path = folder / f"{FAILURES}.parquet"
            if path.exists():
                return _read(path, ["table", "op", "group", "class"])
        return None

    def table(self, name: str, ops: Sequence[Op]) -> pa.Table:
        """What is compared of a table: its key, labels, times and their spread; Lacking says what it lacks.

        Null cells of the key are 0 or an empty text, so that equal keys are equal.
        """
        path, table = self.tables[name], ops[0].table
        found = pq.read_schema(path).names
        types = {column.name: TYPES[column.type] for column in table.columns}
        labels = {column.name for op in ops for column in op.table.columns if column.field in op.precision}
        times = [column for column, _ in table.measured]
        required = [*table.key, *(times if len(times) == 1 else ())]
        lacking = [column for column in required if column not in found and column not in ABSENT]
        if lacking:
            raise Lacking(f"{path} has no column {', '.join(lacking)}")
        wanted = dict.fromkeys([*required, *sorted(labels), *times, *FURTHER])
        content = _read(path, [column for column in wanted if column in found])
        try:
            for column in table.key:
                content = _with(content, column, _key_cells(content, column, types.get(column, pa.string())))
            for column in (*times, "latency_ci"):
                if column in content.column_names:
                    content = _with(content, column, content[column].cast(pa.float64()))
        except pa.ArrowException as error:
            raise Lacking(f"{path}: column {column}: {_first_line(error)}") from None
        return content


def find(root: Path, asked: str) -> Side:
    """The side that a name stands for: a published dataset, a folder of tables, or a pattern of folders.

    A pattern takes tables that lie spread over families, as in systems/data/h200_sxm/*/vllm/0.24.0. Every
    table is opened; UserError names all that cannot be read.
    """
    folders = _folders(root, asked)
    paths: dict[str, Path] = {}
    problems = Problems()
    for path in (path for folder in folders for path in sorted(folder.glob("*.parquet"))):
        if path.stem == FAILURES:
            continue
        if path.stem in paths:
            problems.add(
                f"baseline {asked}: {path} and {paths[path.stem]} are one table; leave one of them out"
            )
        paths[path.stem] = path
        with problems.collecting():
            _open(path)
    problems.raise_if_any()
    if not paths:
        raise UserError(f"baseline {asked}: there is no table in {folders[0]}; {EXPECTED}")
    return Side(asked, tuple(folders), paths)


def _folders(root: Path, asked: str) -> list[Path]:
    text = asked.strip().rstrip("/")
    places = [root / text, root / RESULTS / text] if text else []
    for place in places:
        if place.is_dir():
            return [place]
    if PATTERN & set(text):
        start = Path(Path(text).anchor or root)
        matching = sorted(start.glob(text.removeprefix(Path(text).anchor)))
        if folders := [path for path in matching if path.is_dir()]:
            return folders
    raise UserError(f"baseline {asked}: there is no such dataset or folder; {EXPECTED}")


def _open(path: Path) -> None:
    try:
        pq.read_metadata(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read: {_first_line(error)}") from None


def _read(path: Path, columns: list[str]) -> pa.Table:
    try:
        return pq.read_table(path, columns=columns, partitioning=None)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise UserError(f"{path}: cannot be read: {_first_line(error)}") from None


def _document(path: Path) -> Mapping[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    if not isinstance(document, dict):
        raise UserError(f"{path}: is not what a dataset's provenance looks like; restore it or remove it")
    return document


def _key_cells(table: pa.Table, column: str, type: pa.DataType) -> Any:
    if column not in table.column_names:
        return pa.repeat(pa.scalar(ABSENT[column], type), table.num_rows)
    empty = "" if pa.types.is_string(type) else 0
    return pc.fill_null(table[column].cast(type), empty)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _with(table: pa.Table, name: str, values: Any) -> pa.Table:
    if name in table.column_names:
        return table.set_column(table.column_names.index(name), name, values)
    return table.append_column(name, values)
