"""The `checks` of config/config.yaml: thresholds, and failing groups that are accepted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Any, TypeVar, get_type_hints

from opatlas.config.document import Section

T = TypeVar("T")


@dataclass(frozen=True)
class FailureShare:
    """Share of a table's cases that failed: a warning, a stop, and the size of a group that must not fail."""

    warn: float
    stop: float
    group: int


@dataclass(frozen=True)
class Roofline:
    """How much faster than the ceilings allow a row may be."""

    tolerance: float


@dataclass(frozen=True)
class Ceilings:
    """What the best control case must reach of a ceiling, among those whose work alone takes `work_ms`."""

    reach: float
    work_ms: float


@dataclass(frozen=True)
class Units:
    """By what factor a shard's times may differ from those of the others, told from so many shards on."""

    factor: float
    shards: int


@dataclass(frozen=True)
class Monotone:
    """By how much a call with more tokens may be faster than one with fewer."""

    tolerance: float


@dataclass(frozen=True)
class Plateau:
    """A floor: above `above_ms`, under a `share` of at least `rows` rows whose work differs by `work`."""

    above_ms: float
    rows: int
    share: float
    work: float


@dataclass(frozen=True)
class Dtypes:
    """Two precisions are alike when `pairs` cases whose work alone takes `work_ms` are within `tolerance`."""

    tolerance: float
    pairs: int
    work_ms: float


@dataclass(frozen=True)
class Controls:
    """How far the control cases of a shard may be from those of the others."""

    tolerance: float


@dataclass(frozen=True)
class Accepted:
    """A failing (model, dtype) group of a table that the user accepts, with the reason."""

    table: str
    group: str
    reason: str


@dataclass(frozen=True)
class Checks:
    """One field for each check that has thresholds, named as the check."""

    failure_share: FailureShare
    roofline: Roofline
    ceilings: Ceilings
    units: Units
    monotone: Monotone
    plateau: Plateau
    dtypes: Dtypes
    controls: Controls
    accepted: tuple[Accepted, ...]

    def record(self) -> dict[str, Any]:
        """As provenance writes it."""
        return {**asdict(self), "accepted": [asdict(entry) for entry in self.accepted]}


def load(section: Section) -> Checks:
    """Reads the section; every mistake goes to its problems."""
    thresholds = {name: _thresholds(section.section(name), kind) for name, kind in _kinds()}
    checks = Checks(**thresholds, accepted=tuple(_accepted(entry) for entry in section.records("accepted")))
    section.done()
    return checks


def keys() -> list[str]:
    """Every threshold as its key in config.yaml."""
    return [f"checks.{name}.{field.name}" for name, kind in _kinds() for field in fields(kind)]


def _kinds() -> Iterator[tuple[str, Any]]:
    return ((name, kind) for name, kind in get_type_hints(Checks).items() if is_dataclass(kind))


def _thresholds(section: Section, kind: type[T]) -> T:
    hints = get_type_hints(kind)
    values = {
        name: section.integer(name, minimum=1) if hint is int else section.number(name, above=0)
        for name, hint in hints.items()
    }
    section.done()
    return kind(**values)


def _accepted(entry: Section) -> Accepted:
    accepted = Accepted(entry.text("table"), entry.text("group"), entry.text("reason"))
    entry.done()
    if not accepted.reason.strip():
        entry.wrong("reason", "say why this group's failure is accepted")
    return accepted
