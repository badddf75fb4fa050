"""cases/unverified.yaml: ops, or ops on some SMs, whose runner never ran on that hardware."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from opatlas.catalogue import matching
from opatlas.catalogue.matching import Match
from opatlas.config.document import Section
from opatlas.errors import Problems


@dataclass(frozen=True)
class Unverified:
    """One entry: the ops and hardware it speaks of, and what is not known."""

    match: Match
    note: str


def load(path: Path, problems: Problems) -> list[Unverified]:
    """Every entry of the list; every mistake goes to `problems`."""
    return [_entry(record, label) for label, record in matching.entries(path, problems)]


def _entry(record: Section, label: str) -> Unverified:
    entry = Unverified(matching.read(record, label), record.text("note"))
    for key in ("model", "where"):
        if key in record:
            record.wrong(key, "an entry is for whole ops")
    record.done()
    return entry
