"""The sweep of linear attention ops: batch and length by phase."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from opatlas.catalogue.reading import sizes
from opatlas.config.document import Section
from opatlas.ops.spec import Column, field_column

PHASES = ("context", "generation", "verify")


class Phase(NamedTuple):
    """`batch` sequences of `seq` tokens each, every pair."""

    name: str
    batch: list[int]
    seq: list[int]

    def points(self) -> list[tuple[int, int]]:
        return list(product(self.batch, self.seq))


def read_phases(section: Section) -> list[Phase]:
    """Every phase that the file has, in the order of `PHASES`."""
    phases = []
    for name in PHASES:
        if name in section:
            part = section.section(name)
            phases.append(Phase(name, sizes(part, "batch"), sizes(part, "seq") if "seq" in part else [1]))
            part.done()
    if not phases:
        section.wrong("context", f"is missing: expected at least one of {', '.join(PHASES)}")
    return phases


def phase_columns() -> tuple[Column, ...]:
    """The columns that all tables of linear attention begin with."""
    return (
        field_column("phase", "string"),
        field_column("batch_size", "int64", "batch"),
        field_column("seq_len", "int64", "seq"),
        Column("num_tokens", "int64", lambda c: c["batch"] * c["seq"]),
    )
