"""Nothing is faster than the platform's ceilings allow, counted on FLOP and on weight and KV bytes."""

from __future__ import annotations

from collections.abc import Iterator

from opatlas.checks.evidence import Evidence, OpRows
from opatlas.checks.finding import ADVISORY, BLOCKING, Finding, some

NAME = "roofline"


def check(evidence: Evidence) -> Iterator[Finding]:
    platform = evidence.planned.dataset.platform
    tolerance = evidence.planned.config.settings.checks.roofline.tolerance
    for own in evidence.ops:
        unknown = sorted(set(_dtypes(own)) - platform.peaks.flops.keys())
        if unknown:
            message = f"no FLOP ceiling for {', '.join(unknown)}"
            advice = f"add it to config/platforms.yaml: {platform.name}.peaks.tflops"
            yield Finding(NAME, ADVISORY, own.table, message, advice, f"op={own.op.op.name}")
        if own.latency_ms is None:
            continue
        fast = own.latency_ms * (1 + tolerance) < own.least_ms
        if fast.any():
            cases = own.ids(fast)
            facts = zip(cases, own.latency_ms[fast], own.least_ms[fast], strict=True)
            examples = some(f"{case}: {ms:.3g} ms, at least {floor:.3g} ms" for case, ms, floor in facts)
            message = "rows are faster than the hardware can be"
            advice = f"the timing, the work model of {own.op.op.name} or the platform's peaks are wrong"
            severity = ADVISORY if platform.sm is None else BLOCKING
            yield Finding(NAME, severity, own.table, message, advice, "latency", len(cases), examples)


def _dtypes(own: OpRows) -> set[str]:
    """The precisions that select a FLOP ceiling."""
    at = own.op.op.fields.index(own.op.op.dtype)
    values = own.op.rows.values[at]
    return {values[code] for code in set(own.op.rows.codes[at].tolist())}
