"""Re-derives every hash of a published dataset, and says what this tree could no longer make again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from opatlas.audit.published import Published, open_dataset
from opatlas.errors import UserError
from opatlas.planning.dataset import PlannedDataset
from opatlas.planning.shards import Shard
from opatlas.publishing.provenance import made_by
from opatlas.publishing.publish import PROVENANCE
from opatlas.shards import file
from opatlas.shards.file import Damaged, ShardFile
from opatlas.shards.quarantine import note_path, quarantine
from opatlas.staleness.fingerprint import SHORT, digest
from opatlas.tables.canonical import content_hash
from opatlas.tables.merge import FAILURES

DAMAGED = "damaged"
LOST = "lost"
CHANGED = "changed"


@dataclass(frozen=True)
class AuditFinding:
    """`kind`: damaged (not what its hash says), lost (the evidence is gone, what is published is whole), or
    changed (this tree would make something else). `place` is a path, or what of the plan is meant."""

    kind: str
    place: str
    what: str

    def __str__(self) -> str:
        return f"{self.kind:<8} {self.place}: {self.what}"


def audit_dataset(planned: PlannedDataset | None, root: Path, name: str) -> tuple[bool, list[AuditFinding]]:
    """(nothing is damaged, all findings) of the published dataset of this name.

    `planned` is what this tree plans under that name, None where it plans nothing. UserError when the
    dataset is not published.
    """
    published = open_dataset(root, name)
    shards = dict(_shards(published))
    findings = [
        *_files(published),
        *(found for found in shards.values() if isinstance(found, AuditFinding)),
        *_tables(published, {key: whole for key, whole in shards.items() if isinstance(whole, ShardFile)}),
        *_logs(published),
        *_contexts(published),
        *(_changes(published, planned) if planned else [_unknown(name)]),
    ]
    if planned:
        known = {str(entry["path"]) for entry in published.provenance["shards"]}
        findings += _unpublished(root, [s for s in planned.all_shards if str(s.path) not in known])
    return all(finding.kind != DAMAGED for finding in findings), findings


def quarantine_damaged(root: Path, planned: PlannedDataset) -> list[Path]:
    """Moves every damaged shard file of a plan away, so that the next run makes it again; returns them."""
    moved = []
    for shard in planned.all_shards:
        if (root / shard.path).exists() and _damage(root, shard):
            quarantine(root, shard.path, note_path(root, shard))
            moved.append(shard.path)
    return moved


def _damage(root: Path, shard: Shard) -> AuditFinding | None:
    try:
        file.verify(root / shard.path)
    except Damaged as error:
        return AuditFinding(DAMAGED, str(shard.path), error.what)
    return None


def _unpublished(root: Path, shards: list[Shard]) -> Iterator[AuditFinding]:
    """Damaged files of shards that are planned now and were not when the dataset was published."""
    for shard in shards:
        if (root / shard.path).exists() and (finding := _damage(root, shard)):
            yield finding


def _files(published: Published) -> Iterator[AuditFinding]:
    """Files of the dataset that are missing, foreign or other than their hash in the provenance."""
    wanted = published.provenance["files"]
    found = {path.name for path in published.folder.iterdir()}
    stamp = f".dataset-{published.provenance['fingerprint'][:SHORT]}"
    for name in sorted({*wanted, stamp} - found):
        yield AuditFinding(DAMAGED, str(published.target / name), "is missing")
    for name in sorted(found - {*wanted, stamp, PROVENANCE}):
        yield AuditFinding(DAMAGED, str(published.target / name), "is no file of this dataset")
    for name in sorted(found & wanted.keys()):
        if _sha256(published.folder / name) != wanted[name]:
            yield AuditFinding(
                DAMAGED, str(published.target / name), "has another sha256 than in provenance.json"
            )


def _shards(published: Published) -> Iterator[tuple[str, ShardFile | AuditFinding]]:
    """Each shard that rows came from, by its key, or what is wrong with its file."""
    for key, entry in published.shards.items():
        path = Path(entry["path"])
        if not (published.root / path).exists():
            yield key, AuditFinding(LOST, str(path), "is gone")
            continue
        try:
            file.verify(published.root / path)
            whole = file.read(published.root / path)
        except Damaged as error:
            yield key, AuditFinding(DAMAGED, str(path), error.what)
            continue
        if any(whole.manifest[kind] != entry[kind] for kind in ("content", "failures_content")):
            yield key, AuditFinding(CHANGED, str(path), "holds other rows now than the dataset was made of")
        else:
            yield key, whole


def _tables(published: Published, shards: Mapping[str, ShardFile]) -> Iterator[AuditFinding]:
    """Tables whose content is not that of the record, or not that of the shards that can be read."""
    for name in (*published.tables, FAILURES):
        place = str(published.target / f"{name}.parquet")
        try:
            table = published.table(name)
        except UserError as error:
            yield AuditFinding(DAMAGED, place, str(error).removeprefix(f"{place}: "))
            continue
        if content_hash(table) != published.provenance["tables"][name]["content"]:
            yield AuditFinding(DAMAGED, place, "its content is not that of the record in provenance.json")
        for key, whole in shards.items():
            if published.provenance["ops"][published.shards[key]["op"]]["table"] == name:
                yield from _against(place, table, key, whole.rows)
            elif name == FAILURES and whole.failures.num_rows:
                yield from _against(place, table, key, whole.failures)


def _against(place: str, table: pa.Table, key: str, own: pa.Table) -> Iterator[AuditFinding]:
    """Compares what a table and a shard both hold of the shard's rows."""
    shared = sorted(set(own.column_names) & set(table.column_names) - {"group"})
    mine = table.filter(pc.equal(table["shard"], key)).select(shared)
    order = [(name, "ascending") for name in ("case_id", *(name for name in shared if name != "case_id"))]
    if content_hash(mine.sort_by(order)) != content_hash(own.select(shared).sort_by(order)):
        yield AuditFinding(DAMAGED, place, f"its rows of the shard {key} are not those in the shard's file")


def _logs(published: Published) -> Iterator[AuditFinding]:
    for name, attempt in published.provenance["attempts"].items():
        path = Path(attempt["log"])
        if not (published.root / path).exists():
            yield AuditFinding(LOST, str(path), f"the log of attempt {name} is gone")
        elif _sha256(published.root / path) != attempt["log_sha256"]:
            yield AuditFinding(
                DAMAGED, str(path), f"the log of attempt {name} has another sha256 than recorded"
            )


def _contexts(published: Published) -> Iterator[AuditFinding]:
    """Contexts in the provenance that are not what their fingerprint was made of."""
    for op, context in published.provenance["contexts"].items():
        if digest(context["parts"]) != context["fingerprint"]:
            place = f"{published.target / PROVENANCE}: contexts.{op}"
            yield AuditFinding(DAMAGED, place, "is not what its fingerprint was made of")


def _changes(published: Published, planned: PlannedDataset) -> Iterator[AuditFinding]:
    """What this tree would make otherwise than what is published: rows by op, then tables of the rows."""
    provenance = published.provenance
    if provenance["fingerprint"] == planned.fingerprint:
        return
    contexts = {shard.op: shard.context.parts for shard in planned.shards}
    for op, context in provenance["contexts"].items():
        if op not in contexts:
            yield AuditFinding(CHANGED, op, "is no longer planned with a runner")
        elif changed := differing(contexts[op], context["parts"]):
            yield AuditFinding(CHANGED, op, f"its rows would be measured again: {', '.join(changed)}")
    yield from _cases(published, planned)
    if changed := differing(made_by(planned), provenance["made_by"]):
        yield AuditFinding(CHANGED, "tables", f"would be made again of the same rows: {', '.join(changed)}")
    if changed := differing(planned.config.settings.publishing(), provenance["publishing"]):
        yield AuditFinding(CHANGED, "settings", f"differ: {', '.join(changed)}")


def _cases(published: Published, planned: PlannedDataset) -> Iterator[AuditFinding]:
    names = (*published.tables, FAILURES)
    before = {
        case_id
        for name in names
        if (published.folder / f"{name}.parquet").exists()
        for case_id in _case_ids(published, name)
    }
    for op in planned.plan.ops:
        now = set(op.ids) if op.runner else set()
        old = {case_id for case_id in before if case_id.startswith(f"{op.op.name}/")}
        if now != old:
            what = f"the plan has {len(now - old)} cases more and {len(old - now)} fewer"
            yield AuditFinding(CHANGED, op.op.name, what)


def _case_ids(published: Published, name: str) -> list[str]:
    try:
        return published.table(name)["case_id"].to_pylist()  # type: ignore[no-any-return]
    except (UserError, KeyError):
        return []


def _unknown(name: str) -> AuditFinding:
    return AuditFinding(CHANGED, f"results/{name}", "this tree plans no dataset of this name")


def differing(new: Mapping[str, Any], old: Mapping[str, Any], path: str = "") -> list[str]:
    """Dotted names of what differs between two documents, mappings entered."""
    names = []
    for key in sorted(new.keys() | old.keys()):
        mine, other = new.get(key), old.get(key)
        if isinstance(mine, Mapping) and isinstance(other, Mapping):
            names += differing(mine, other, f"{path}{key}.")
        elif mine != other:
            names.append(f"{path}{key}")
    return names


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
