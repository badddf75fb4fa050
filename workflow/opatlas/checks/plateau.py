"""No floor of the host: many calls that take one time whatever their work, far above what they need."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opatlas.checks.evidence import Evidence, OpRows
from opatlas.checks.finding import ADVISORY, EXAMPLES, Finding, some
from opatlas.config.checks import Plateau
from opatlas.ops.spec import Array

# Rows within this factor of a floor stand on it; where work explains so much of it, it is none.
WIDTH, EXPLAINED = 1.2, 0.25


def check(evidence: Evidence) -> Iterator[Finding]:
    # On a CPU the host does the work.
    if evidence.planned.dataset.platform.sm is None:
        return
    limits = evidence.planned.config.settings.checks.plateau
    for own in evidence.ops:
        if own.latency_ms is None:
            continue
        kernels, names = own.codes("kernel_source")
        for precision, kind in own.precisions():
            for code, name in enumerate(names):
                chosen = np.flatnonzero(kind & (kernels == code))
                yield from _group(own, own.latency_ms, chosen, f"{precision} {name}", limits)


def _group(own: OpRows, latency: Array, chosen: Array, name: str, limits: Plateau) -> Iterator[Finding]:
    if len(chosen) < limits.rows:
        return
    floor = float(np.nanpercentile(latency[chosen], 5))
    standing = chosen[latency[chosen] <= WIDTH * floor]
    work = own.work_ms[standing]
    if floor < limits.above_ms or len(standing) < limits.share * len(chosen):
        return
    spread = work.max() / max(work.min(), 1e-9)
    if spread >= limits.work and np.median(work) <= EXPLAINED * floor:
        message = f"rows of {name} take about {floor:.3g} ms though their work differs {spread:.0f} times"
        advice = "look whether launches or another fixed cost are timed; a trace of one call shows it"
        examples = some(own.id(row) for row in standing[:EXAMPLES])
        count = len(standing)
        yield Finding("plateau", ADVISORY, own.table, message, advice, f"kind={name}", count, examples)
