"""cases/dispatch.yaml: which kernel a framework's own dispatch picks, by SM, model or case field."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from opatlas.catalogue import matching
from opatlas.catalogue.matching import Match
from opatlas.config.document import Section
from opatlas.errors import Problems
from opatlas.ops.spec import load_op, op_names


@dataclass(frozen=True)
class Dispatch:
    """The cases it speaks of run on each of `kernels`; "" is a framework's only way. The last entry holds."""

    match: Match
    kernels: tuple[str, ...]


def load(path: Path, problems: Problems) -> list[Dispatch]:
    """Every entry of the list; every mistake goes to `problems`."""
    return [_entry(record, label) for label, record in matching.entries(path, problems)]


def _entry(record: Section, label: str) -> Dispatch:
    kernels = matching.several(record, "kernel")
    entry = Dispatch(matching.read(record, label), kernels or ())
    record.raw("kernel")
    if "kernel" in record and not entry.kernels:
        record.wrong("kernel", "expected a kernel's name, or a list of them")
    for key, names in (("backend", entry.match.backends), ("op", entry.match.ops)):
        if not names:
            record.wrong(key, "say which one the entry is for")
    for op in entry.match.ops or ():
        if op in op_names() and "dispatch" not in load_op(op).fields:
            record.wrong("op", f"cases of {op} name no dispatch")
    record.done()
    return entry
