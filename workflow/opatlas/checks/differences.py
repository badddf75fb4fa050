"""A latency that is a difference of two timings stands beside both; a zero is never without them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opatlas.checks.evidence import Evidence, OpRows
from opatlas.checks.finding import BLOCKING, Finding, some
from opatlas.ops.spec import Array

NAME = "differences"


def check(evidence: Evidence) -> Iterator[Finding]:
    for own in evidence.ops:
        names = own.op.op.table.difference
        if not names or own.latency_ms is None:
            continue
        minuend, subtrahend = (own.column(name) for name in names)
        lone = (own.latency_ms == 0) & (np.isnan(minuend) | np.isnan(subtrahend))
        if lone.any():
            message = f"a latency of zero stands without {' and '.join(names)}"
            advice = "the runner must bring both timings with the row: zero alone hides their error"
            yield _finding(own, message, advice, lone)
        known = ~np.isnan(minuend) & ~np.isnan(subtrahend)
        other = known & ~np.isclose(own.latency_ms, np.maximum(minuend - subtrahend, 0), atol=1e-9)
        if other.any():
            message = f"the latency is not {' less '.join(names)}, cut at zero"
            yield _finding(own, message, "the runner subtracts something else: correct it", other)


def _finding(own: OpRows, message: str, advice: str, chosen: Array) -> Finding:
    cases = own.ids(chosen)
    return Finding(NAME, BLOCKING, own.table, message, advice, "latency", len(cases), some(cases))
