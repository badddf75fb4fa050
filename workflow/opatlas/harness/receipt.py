"""The receipt of a ticket: the file whose presence proves that every case has an outcome."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

from opatlas.files import write_atomically
from opatlas.harness import journal
from opatlas.harness.ticket import Ticket

FORMAT = 1


def write(ticket: Ticket, journals: journal.Journals) -> None:
    """Writes `<todo>.done.json` whole or not at all; ValueError while a case has no outcome."""
    keys = {case.key for case in ticket.cases}
    if missing := sorted(keys - journals.outcomes.keys()):
        raise ValueError(f"{len(missing)} cases have no outcome, the first is {missing[0].case}")
    outcomes = [journals.outcomes[key] for key in keys]
    kinds = Counter(outcome["record"] for outcome in outcomes)
    document = {
        "format": FORMAT,
        "dataset": ticket.dataset,
        "op": ticket.op,
        "shard": ticket.shard,
        "fingerprint": ticket.fingerprint,
        "context": ticket.context,
        "cases": len(keys),
        "rows": kinds["row"],
        "failures": kinds["failure"],
        "attempts": [
            {"attempt": name, "end": journals.ends.get(name, {}).get("reason"), **_files(ticket.folder, name)}
            for name in journals.attempts
        ],
    }
    write_atomically(ticket.receipt, json.dumps(document, indent=1).encode() + b"\n")


def _files(folder: Path, attempt: str) -> dict[str, Any]:
    """Journal and log of an attempt with their sizes and hashes now; one that is still alive appends more."""
    entry = {}
    for kind in ("journal", "log"):
        path = folder / f"attempt-{attempt}.{kind}"
        content = path.read_bytes() if path.exists() else b""
        entry[kind] = {
            "file": path.name,
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
    return entry
