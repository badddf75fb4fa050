"""What a supervisor is asked to measure: one JSON file, written when the shard is planned."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

from opatlas.errors import UserError

FORMAT = 1
SUFFIX = ".ticket.json"


class Key(NamedTuple):
    """What one outcome belongs to. A case that is to be measured again gets the next generation."""

    case: str
    generation: int


@dataclass(frozen=True)
class TicketCase:
    """One case to measure: `cost_s` is the time in seconds it is planned to hold the device."""

    id: str
    build: str
    cost_s: float
    group: str = ""
    generation: int = 0

    @property
    def key(self) -> Key:
        return Key(self.id, self.generation)


@dataclass(frozen=True)
class Limits:
    """How long things may take, in seconds, before the worker counts as hung; memory in GiB.

    A case may take `deadline_factor` times its cost plus `deadline_floor_s`, a build `build_s` before that.
    """

    deadline_factor: float = 10.0
    deadline_floor_s: float = 60.0
    build_s: float = 900.0
    start_s: float = 900.0
    grace_s: float = 20.0
    memory_gib: float | None = None

    def case_s(self, cost_s: float) -> float:
        return self.deadline_factor * cost_s + self.deadline_floor_s


@dataclass(frozen=True)
class Ticket:
    path: Path
    dataset: str
    backend: str
    version: str
    op: str
    shard: str
    fingerprint: str
    context: str
    cases: tuple[TicketCase, ...]
    runtime: Mapping[str, Any]
    expect: Mapping[str, Any]
    platform: Mapping[str, Any]
    measure: Mapping[str, Any]
    run: Limits
    code: Mapping[str, str]
    harness_modules: tuple[str, ...]
    control: tuple[str, ...] = field(default=())

    @property
    def folder(self) -> Path:
        """Where the journals, logs and the receipt lie."""
        return self.path.parent

    @property
    def receipt(self) -> Path:
        """The file that proves that every case of this ticket has an outcome."""
        return self.path.with_name(self.path.name.removesuffix(SUFFIX) + ".done.json")


def load(path: Path) -> Ticket:
    """Reads a ticket; UserError names the file and the key that is wrong."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot read the ticket: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"{path}: not a JSON file: {error}") from None
    if not path.name.endswith(SUFFIX):
        raise UserError(f"{path}: a ticket's name ends in {SUFFIX}")
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise UserError(f"{path}: format: expected a ticket of format {FORMAT}")
    values = {key: value for key, value in document.items() if key != "format"}
    try:
        ticket: Ticket = _record(
            Ticket,
            values,
            path=lambda _: path.absolute(),
            cases=lambda cases: tuple(_record(TicketCase, case) for case in cases),
            run=lambda limits: _record(Limits, limits),
            harness_modules=tuple,
            control=tuple,
        )
        return ticket
    except (TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{path}: {error}") from None


def _record(kind: Any, values: Mapping[str, Any], **readers: Callable[[Any], Any]) -> Any:
    """A dataclass from a mapping; an unknown or missing key is a TypeError that names it."""
    known = {entry.name for entry in fields(kind)}
    values = {**values, **({"path": None} if "path" in readers else {})}
    if unknown := sorted(set(values) - known):
        raise TypeError(f"unknown key {unknown[0]!r} of {kind.__name__}")
    return kind(**{key: readers[key](value) if key in readers else value for key, value in values.items()})
