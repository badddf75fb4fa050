"""cases/skips.yaml: the one list of what is left out of a plan, and why."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from opatlas.catalogue import matching
from opatlas.catalogue.matching import Match
from opatlas.config.document import Section
from opatlas.errors import Problems

# The only reasons for leaving a case out; everything else runs and has its failure recorded.
REASONS = ("mismeasured", "kills", "fails_whole", "unserved")


@dataclass(frozen=True)
class Skip:
    """One entry: the cases it speaks of, and why they are left out."""

    match: Match
    why: str
    reason: str


def load(path: Path, problems: Problems) -> list[Skip]:
    """Every entry of the list; every mistake goes to `problems`."""
    return [_skip(record, label) for label, record in matching.entries(path, problems)]


def _skip(record: Section, label: str) -> Skip:
    skip = Skip(matching.read(record, label), record.choice("why", REASONS), record.text("reason"))
    if "reason" in record and not skip.reason.strip():
        record.wrong("reason", "say why these cases are left out")
    record.done()
    return skip
