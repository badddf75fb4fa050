"""collection_meta.yaml: the sidecar by which consumers of perf tables know what lies beside it.

Its fields are those that AIConfigurator's tables carry; docs/dataset.md lists them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from opatlas.config.frameworks import Runtime
from opatlas.planning.dataset import PlannedDataset
from opatlas.planning.plan import OpPlan
from opatlas.staleness.fingerprint import digest
from opatlas.tables.merge import by_table

SCHEMA_VERSION = 2

Document = dict[str, Any]


def document(
    planned: PlannedDataset, record: Mapping[str, Any], failures: Mapping[str, int], revision: str | None
) -> Document:
    """The sidecar; `failures` counts the failed cases of each table."""
    entries = {}
    for name, ops in by_table(planned).items():
        attempts = attempts_of(record, ops)
        entry = {
            **({"collector_ref": revision} if revision else {}),
            "collector_hash": "sha256:" + digest({op.op.name: _code(record, op) for op in ops}),
            "case_plan_hash": _case_plan_hash(ops),
            "collected_at": max((str(attempt["started"]) for attempt in attempts), default=""),
            "rows": record["tables"][name]["rows"],
            "status": status(planned, name),
        }
        runtime = _runtime(planned, [op.runtime for op in ops], attempts)
        entries[name] = {
            **entry,
            "classified_failures": failures.get(name, 0),
            "collections": [{**entry, "runtime": runtime}],
        }
    runtimes = [entry["collections"][0]["runtime"] for entry in entries.values()]
    return {
        "schema_version": SCHEMA_VERSION,
        "provenance": "collected",
        "runtime": _shared(runtimes),
        "tables": entries,
    }


def text(document: Document) -> bytes:
    """The document as YAML."""
    return yaml.dump(document, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=1000).encode()


class _Plain(yaml.SafeDumper):
    """Repeats what stands twice instead of referring to it."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def status(planned: PlannedDataset, table: str) -> str:
    """`partial` when an op of the table ran no case at all; recorded failures don't demote."""
    ran_none = any(op.op.table.name == table and len(op.rows) and not op.runner for op in planned.plan.ops)
    return "partial" if ran_none else "complete"


def attempts_of(record: Mapping[str, Any], ops: Iterable[OpPlan]) -> list[Mapping[str, Any]]:
    """The attempts that measured these ops, in the order of their ids."""
    names = {op.op.name for op in ops}
    used = {name for shard in record["shards"] if shard["op"] in names for name in shard["attempts"]}
    return [record["attempts"][name] for name in sorted(used)]


def _code(record: Mapping[str, Any], op: OpPlan) -> Any:
    return record["contexts"][op.op.name]["parts"]["code"]


def _case_plan_hash(ops: Iterable[OpPlan]) -> str:
    ids = sorted(case_id for op in ops for case_id in op.ids)
    return "sha256:" + hashlib.sha256("\n".join(ids).encode()).hexdigest()


def _runtime(
    planned: PlannedDataset, runtimes: list[Runtime], attempts: Iterable[Mapping[str, Any]]
) -> Document:
    dataset = planned.dataset
    found: Document = {"framework": dataset.backend, "version": dataset.version}
    images = {runtime.image: runtime for runtime in runtimes}
    if len(images) == 1 and (runtime := runtimes[0]).image:
        repository = runtime.image.partition("@")[0]
        found["image"] = f"{repository}:{runtime.tag}" if runtime.tag else runtime.image
        found["image_digest"] = runtime.digest
    exact = [dict(attempt.get("versions") or {}) for attempt in attempts]
    if exact:
        found["abi"] = dict(sorted(_shared(exact).items()))
    return found


def _shared(documents: list[Document]) -> Document:
    """What all of the documents say alike."""
    first, *others = documents or [{}]
    return {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}
