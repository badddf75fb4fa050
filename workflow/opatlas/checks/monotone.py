"""A call with more tokens takes no less time, within a tolerance."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opatlas.checks.curves import TOKENS, along, axes
from opatlas.checks.evidence import Evidence, OpRows
from opatlas.checks.finding import ADVISORY, EXAMPLES, Finding


def check(evidence: Evidence) -> Iterator[Finding]:
    tolerance = evidence.planned.config.settings.checks.monotone.tolerance
    for own in evidence.ops:
        # Differences of two timings are noise where they are small.
        if own.latency_ms is None or own.op.op.zero:
            continue
        for axis in axes(own.op, TOKENS):
            yield from _axis(own, own.latency_ms, axis, tolerance)


def _axis(own: OpRows, latency: np.ndarray, axis: str, tolerance: float) -> Iterator[Finding]:
    order, curve = along(own.op, axis, own.place, own.part)
    time, unsure = latency[order], own.column("latency_ci")[order]
    falls = time[1:] + unsure[1:] < (1 - tolerance) * time[:-1] - unsure[:-1]
    steps = np.flatnonzero(falls & (curve[1:] == curve[:-1]))
    if len(steps):
        worst = steps[np.argsort(time[steps + 1] / time[steps], kind="stable")][:EXAMPLES]
        examples = tuple(
            f"{own.id(order[step])}: {time[step]:.3g} ms, the next one takes {time[step + 1]:.3g} ms"
            for step in worst
        )
        message = f"calls are more than {tolerance:.0%} faster than the next smaller one along {axis}"
        advice = "look whether the kernel changes there; else measure both again: retry --case"
        yield Finding("monotone", ADVISORY, own.table, message, advice, axis, len(steps), examples)
