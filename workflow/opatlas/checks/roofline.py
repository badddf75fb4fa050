"""Nothing is faster than the platform's ceilings allow, counted on FLOP and on weight and KV bytes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opatlas.checks.evidence import Evidence, OpRows
from opatlas.checks.finding import ADVISORY, BLOCKING, Finding, some
from opatlas.config.platforms import Peaks
from opatlas.ops.spec import Array


def check(evidence: Evidence) -> Iterator[Finding]:
    platform = evidence.planned.dataset.platform
    for own in evidence.ops:
        dtypes = own.op.columns[own.op.op.dtype]
        unknown = sorted(set(dtypes) - platform.peaks.flops.keys())
        if unknown:
            message = f"no FLOP ceiling for {', '.join(unknown)}"
            advice = f"add it to config/platforms.yaml: {platform.name}.peaks.tflops"
            yield Finding("roofline", ADVISORY, own.table, message, advice, f"op={own.op.op.name}")
        latency = own.column("latency") if "latency" in own.rows.column_names else None
        if latency is None:
            continue
        least = shortest_ms(own, platform.peaks)
        fast = latency < least
        if fast.any():
            cases = own.ids(fast)
            facts = zip(cases, latency[fast], least[fast], strict=True)
            examples = some(f"{case}: {ms:.3g} ms, at least {floor:.3g} ms" for case, ms, floor in facts)
            message = "rows are faster than the hardware can be"
            advice = f"the timing, the work model of {own.op.op.name} or the platform's peaks are wrong"
            severity = ADVISORY if platform.sm is None else BLOCKING
            yield Finding("roofline", severity, own.table, message, advice, "latency", len(cases), examples)


def shortest_ms(own: OpRows, peaks: Peaks) -> Array:
    """The time in ms below which no row of an op can be; a precision without a ceiling counts bytes alone."""
    work = own.op.work
    dtypes = own.op.columns[own.op.op.dtype]
    peak = np.array([peaks.flops.get(dtype, np.inf) for dtype in dtypes])
    seconds = work.certain * np.maximum(work.flops / peak, work.moved_bytes / peaks.bytes_per_s)
    least: Array = 1e3 * seconds[own.place]
    return least
