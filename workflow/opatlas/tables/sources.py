"""What a dataset is made of: the shards of its plan, and what they say of where their rows come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from opatlas.config.datasets import RESULTS
from opatlas.planning.dataset import PlannedDataset
from opatlas.planning.shards import Shard
from opatlas.shards import file
from opatlas.shards.file import Damaged, Manifest, ShardFile

Record = dict[str, Any]


def read(root: Path, shard: Shard) -> ShardFile:
    """The file of a planned shard; Damaged where it is missing, not whole, or of another plan."""
    whole = file.read(root / shard.path)
    for what, wanted in (
        ("dataset", shard.dataset.base),
        ("op", shard.op),
        ("fingerprint", shard.fingerprint),
    ):
        if (found := whole.manifest[what]) != wanted:
            raise Damaged(shard.path, f"is a shard of the {what} {found}, and the plan wants {wanted}")
    return whole


def kernels(tables: Iterable[pa.Table]) -> Record:
    """kernel_source -> name of each device kernel seen under it -> rows it was seen in."""
    seen: dict[str, dict[str, int]] = {}
    for rows in tables:
        names = rows["kernels"].combine_chunks()
        parents = pc.take(rows["kernel_source"].combine_chunks(), pc.list_parent_indices(names))
        pairs = pa.table({"source": parents, "kernel": names.flatten()})
        for pair in pairs.group_by(["source", "kernel"]).aggregate([([], "count_all")]).to_pylist():
            counts = seen.setdefault(pair["source"], {})
            counts[pair["kernel"]] = counts.get(pair["kernel"], 0) + pair["count_all"]
    return seen


def provenance(manifests: Iterable[tuple[Shard, Manifest]]) -> Record:
    """Manifests as one record: contexts by op, shards in the order of their paths, attempts by id."""
    contexts, shards, attempts = {}, [], {}
    for shard, manifest in manifests:
        entry = {"path": str(shard.path), **manifest}
        contexts[shard.op] = {
            "fingerprint": entry.pop("context_fingerprint"),
            "parts": entry.pop("context"),
        }
        own = {attempt["id"]: attempt for attempt in entry.pop("attempts")}
        attempts.update(own)
        shards.append({**entry, "attempts": sorted(own)})
    shards.sort(key=lambda entry: str(entry["path"]))
    return {"contexts": contexts, "shards": shards, "attempts": attempts}


def foreign(planned: PlannedDataset, root: Path) -> Iterator[tuple[Path, str]]:
    """Files among the shards of the planned ops that are no shards of them; they are never read as such."""
    for op in dict.fromkeys(shard.op for shard in planned.shards):
        folder = RESULTS / "shards" / planned.dataset.base / op
        if not (root / folder).is_dir():
            continue
        # By name alone: files of the audit sample hold rows too, of which none is published.
        known = {path for path in (root / folder).iterdir() if file.NAME.match(path.name)}
        names = {path.name for path in known} | {file.failures_path(path).name for path in known}
        mine = {shard.path.name for shard in planned.all_shards if shard.op == op}
        for path in sorted((root / folder).iterdir()):
            if path.name not in names and not path.name.startswith("."):
                yield folder / path.name, "is no file of a shard"
            elif path in known and path.name not in mine:
                yield from _misplaced(path, folder / path.name, planned.dataset.base, op)


def _misplaced(path: Path, name: Path, base: str, op: str) -> Iterable[tuple[Path, str]]:
    try:
        manifest = file.read_manifest(path)
    except Damaged as error:
        return [(name, error.what)]
    if (manifest["dataset"], manifest["op"]) != (base, op):
        return [(name, f"is a shard of {manifest['dataset']}/{manifest['op']}")]
    return []
