"""cases/labels.yaml: what must be true of labels, given facts; cases/relabels.yaml: labels put right since.

A label is a case field that a table publishes: a precision, a size, a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from opatlas.catalogue import matching
from opatlas.catalogue.matching import Match
from opatlas.config.document import Section
from opatlas.errors import Problems


@dataclass(frozen=True)
class LabelRule:
    """Rows that match, of one of `kernels` (kernel_source) where it is given, must hold these conditions."""

    match: Match
    kernels: tuple[str, ...] | None
    must: Mapping[str, Any]
    reason: str


@dataclass(frozen=True)
class Relabel:
    """Rows of cases that match are published under other labels than they were planned with."""

    match: Match
    to: Mapping[str, Any]
    reason: str


@dataclass(frozen=True)
class Labels:
    """What of both lists speaks of one backend and SM."""

    backend: str = ""
    sm: int | None = None
    rules: tuple[LabelRule, ...] = ()
    relabels: tuple[Relabel, ...] = ()

    def rules_of(self, op: str, fields: Iterable[str]) -> list[LabelRule]:
        return [rule for rule in self.rules if self._concerns(rule.match, op, fields)]

    def relabels_of(self, op: str, fields: Iterable[str]) -> list[Relabel]:
        return [relabel for relabel in self.relabels if self._concerns(relabel.match, op, fields)]

    def record(self) -> list[Any]:
        """Everything that shapes a dataset; where an entry stands in its file does not."""
        rules = [{**asdict(rule), "match": _facts(rule.match)} for rule in self.rules]
        return rules + [{**asdict(entry), "match": _facts(entry.match)} for entry in self.relabels]

    def _concerns(self, match: Match, op: str, fields: Iterable[str]) -> bool:
        return match.concerns(self.backend, op, self.sm, list(fields))


def _facts(match: Match) -> dict[str, Any]:
    return {key: value for key, value in asdict(match).items() if key != "label"}


def load_rules(path: Path, problems: Problems) -> list[LabelRule]:
    """Every rule of the list; every mistake goes to `problems`."""
    return [_rule(record, label) for label, record in matching.entries(path, problems)]


def load_relabels(path: Path, problems: Problems) -> list[Relabel]:
    """Every recorded relabelling; every mistake goes to `problems`."""
    return [_relabel(record, label) for label, record in matching.entries(path, problems)]


def _rule(record: Section, label: str) -> LabelRule:
    match = _match(record, label)
    kernels = matching.several(record, "kernel")
    rule = LabelRule(match, kernels, matching.conditions(record, "must", match.ops), _reason(record))
    record.done()
    return rule


def _relabel(record: Section, label: str) -> Relabel:
    match = _match(record, label)
    to = matching.conditions(record, "to", match.ops)
    for field, value in to.items():
        if isinstance(value, (dict, list)):
            record.wrong("to", f"{field}: expected one value, found {value!r}")
    if match.ops is None:
        record.wrong("op", "is missing: name the op whose rows get other labels")
    relabel = Relabel(match, to, _reason(record))
    record.done()
    return relabel


def _match(record: Section, label: str) -> Match:
    if "model" in record:
        record.wrong("model", "is a label of some ops: name it under where")
    return matching.read(record, label)


def _reason(record: Section) -> str:
    reason = record.text("reason")
    if "reason" in record and not reason.strip():
        record.wrong("reason", "say why, and what shows it")
    return reason
