"""The platform's ceilings are those of its cards, as far as their own control cases tell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from opatlas.checks.controls import timings
from opatlas.checks.evidence import Evidence
from opatlas.checks.finding import ADVISORY, Finding
from opatlas.config.platforms import Peaks
from opatlas.ops.ids import parse_id
from opatlas.ops.spec import load_op


@dataclass(frozen=True)
class Reached:
    """How much of a ceiling one timing of a control case reached; `least_ms` is its time at the ceiling."""

    ceiling: str
    share: float
    least_ms: float
    case: str
    node: str


def check(evidence: Evidence) -> Iterator[Finding]:
    platform = evidence.planned.dataset.platform
    # Those of a CPU are a floor for any machine, not of this one.
    if platform.sm is None:
        return
    checks = evidence.planned.config.settings.checks
    best: dict[str, Reached] = {}
    heavy: dict[str, Reached] = {}
    for reached in _reached(evidence, platform.peaks):
        _keep(best, reached)
        if reached.least_ms >= checks.ceilings.work_ms:
            _keep(heavy, reached)
    for _, reached in sorted(best.items()):
        if reached.share > 1 + checks.roofline.tolerance:
            yield _finding(platform.name, reached, "a control case beats the ceiling", "raise it")
    for _, reached in sorted(heavy.items()):
        if reached.share < checks.ceilings.reach:
            message = "no control case comes near the ceiling"
            yield _finding(platform.name, reached, message, "lower it, or look at the card's clocks")


def _keep(best: dict[str, Reached], reached: Reached) -> None:
    best[reached.ceiling] = max(best.get(reached.ceiling, reached), reached, key=lambda r: r.share)


def _reached(evidence: Evidence, peaks: Peaks) -> Iterator[Reached]:
    """What the timings of control cases reached of the ceiling that bounds each."""
    for control in timings(evidence.record):
        op = load_op(control.op)
        if ("latency", "ms") not in op.table.measured:
            continue
        case = parse_id(control.case)[1]
        work = op.work(op.columns([case]))
        dtype = getattr(case, op.dtype)
        peak = peaks.flops.get(dtype, float("inf"))
        times = {
            f"tflops.{dtype}": 1e3 * float(work.flops[0]) / peak,
            "bandwidth_gbs": 1e3 * float(work.moved_bytes[0]) / peaks.bytes_per_s,
        }
        ceiling, least = max(times.items(), key=lambda item: item[1])
        certain = float(np.ravel(work.certain)[0])
        yield Reached(ceiling, certain * least / control.latency, least, control.case, control.device[0])


def _finding(platform: str, reached: Reached, message: str, advice: str) -> Finding:
    key = f"{platform}.peaks.{reached.ceiling}"
    example = f"{reached.case} on {reached.node}: {reached.share:.0%} of it"
    what = f"{message} {key}"
    return Finding(
        "ceilings", ADVISORY, "", what, f"{advice}: config/platforms.yaml", f"key={key}", 1, (example,)
    )
