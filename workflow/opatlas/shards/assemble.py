"""Makes a shard's file of its outcomes, from journals and from the files of older shards."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from opatlas.harness.journal import Journals
from opatlas.harness.ticket import Key
from opatlas.planning.shards import Shard
from opatlas.shards import file
from opatlas.shards.inventory import Inventory

Records = list[dict[str, Any]]


def assemble(root: Path, shard: Shard) -> dict[str, Any]:
    """Writes the file of a shard and returns its manifest; UserError while an outcome is missing."""
    inventory = Inventory.of(root, shard)
    rows: Records = []
    failures: Records = []
    attempts: dict[str, Any] = {}
    controls: dict[tuple[str, int], dict[str, Any]] = {}
    for source, keys in inventory.sources(shard).items():
        if source.is_dir():
            own, lost, used = _from_journals(root, inventory.journals(source), source, keys)
            timed = inventory.journals(source).controls
        else:
            own, lost, used, timed = _from_file(source, keys)
        rows += own
        failures += lost
        attempts.update(used)
        controls |= {(control["attempt"], control["order"]): control for control in timed}
    manifest = {
        "dataset": shard.dataset.base,
        "op": shard.op,
        "shard": shard.name,
        "fingerprint": shard.fingerprint,
        "context": dict(shard.context.parts),
        "context_fingerprint": shard.context.fingerprint,
        "cases": len(shard.keys),
        "attempts": [attempts[name] for name in sorted(attempts)],
        "controls": [controls[key] for key in sorted(controls) if key[0] in attempts],
    }
    return file.write(root / shard.path, rows, failures, manifest)


def _from_journals(
    root: Path, journals: Journals, folder: Path, keys: Sequence[Key]
) -> tuple[Records, Records, dict[str, Any]]:
    rows, failures = [], []
    for key in keys:
        record = journals.outcomes[key]
        head = journals.attempts[record["attempt"]]
        identity = {"case_id": key.case, "generation": key.generation}
        if record["record"] == "row":
            rows += [_row(identity, row, record, head) for row in record["rows"]]
        else:
            failures.append(_failure(identity, record, head))
    used = {record["attempt"] for record in (*rows, *failures)}
    return rows, failures, {name: _attempt(root, folder, journals.attempts[name]) for name in used}


def _row(
    identity: Mapping[str, Any], row: Mapping[str, Any], record: Mapping[str, Any], head: Mapping[str, Any]
) -> dict[str, Any]:
    values = {name: row.get(name) for name in file.ROWS.names} | dict(identity)
    values |= {
        "part": row.get("part", ""),
        "values": json.dumps(row["values"], sort_keys=True) if row.get("values") else None,
        "notes": json.dumps(dict(row.get("notes") or {}) | _first(record), sort_keys=True),
        "attempt": record["attempt"],
    }
    return values | _place(head)


def _first(record: Mapping[str, Any]) -> dict[str, Any]:
    """What went wrong before the row that counts, where something did."""
    return {"first": record["first"]} if record.get("first") else {}


def _failure(
    identity: Mapping[str, Any], record: Mapping[str, Any], head: Mapping[str, Any]
) -> dict[str, Any]:
    values = {name: record.get(name) for name in file.FAILURES.names}
    values |= dict(identity) | {
        "attempt": record["attempt"],
        "node": head["node"],
        "job_id": head.get("job_id"),
    }
    values |= {
        name: json.dumps(record[name], sort_keys=True) if record.get(name) else None
        for name in ("first", "repeat")
    }
    return values


def _place(head: Mapping[str, Any]) -> dict[str, Any]:
    """Where and with what an attempt ran, for each of its rows."""
    facts, versions = head.get("facts") or {}, head.get("versions") or {}
    return {
        "job_id": head.get("job_id"),
        "node": head.get("node"),
        "device": facts.get("device"),
        "gpu_uuid": facts.get("uuid"),
        "framework_version": versions.get("framework"),
        "image_digest": head.get("image_digest"),
    }


def _attempt(root: Path, folder: Path, head: Mapping[str, Any]) -> dict[str, Any]:
    log = folder / f"attempt-{head['attempt']}.log"
    content = log.read_bytes() if log.exists() else b""
    return {
        "id": head["attempt"],
        **{name: head.get(name) for name in ("node", "job_id", "started", "versions", "facts", "cmdline")},
        "log": str(log.relative_to(root)),
        "log_sha256": hashlib.sha256(content).hexdigest(),
    }


def _from_file(path: Path, keys: Sequence[Key]) -> tuple[Records, Records, dict[str, Any], Records]:
    whole = file.read(path)
    wanted = set(keys)

    def chosen(records: Records) -> Records:
        return [record for record in records if Key(record["case_id"], record["generation"]) in wanted]

    rows, failures = chosen(whole.rows.to_pylist()), chosen(whole.failures.to_pylist())
    used = {record["attempt"] for record in (*rows, *failures)}
    attempts = {entry["id"]: entry for entry in whole.manifest["attempts"] if entry["id"] in used}
    return rows, failures, attempts, whole.manifest["controls"]
