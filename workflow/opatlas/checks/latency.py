"""Times are finite and positive, or zero where the op declares that zero is legal."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opatlas.checks.evidence import Evidence
from opatlas.checks.finding import BLOCKING, Finding, some

SPREADS = ("latency_mad", "latency_ci")


def check(evidence: Evidence) -> Iterator[Finding]:
    for own in evidence.ops:
        floor = "at least zero" if own.op.op.zero else "above zero"
        for name, _ in own.op.op.table.measured:
            values = own.column(name)
            good = np.isfinite(values) & ((values >= 0) if own.op.op.zero else (values > 0))
            if not good.all():
                yield _finding(own.table, name, f"must be a finite number {floor}", own.ids(~good))
        for name in SPREADS:
            values = own.column(name)
            good = np.isfinite(values) & (values >= 0)
            if not good.all():
                yield _finding(own.table, name, "must be a finite number, at least zero", own.ids(~good))


def _finding(table: str, column: str, rule: str, cases: list[str]) -> Finding:
    advice = "measure them again: python -m opatlas retry --case"
    return Finding("latency", BLOCKING, table, f"{column} {rule}", advice, column, len(cases), some(cases))
