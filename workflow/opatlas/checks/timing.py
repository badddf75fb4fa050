"""Rows are timed on the device: a row bound by the host is never stored as a good one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opatlas.checks.evidence import Evidence
from opatlas.checks.finding import ADVISORY, BLOCKING, Finding, some
from opatlas.measuring.measurement import TIMING_METHODS

HOST_CLOCK = "cpu_perf_counter"


def check(evidence: Evidence) -> Iterator[Finding]:
    on_gpu = evidence.planned.dataset.platform.sm is not None
    allowed = [method for method in TIMING_METHODS if (method != HOST_CLOCK) == on_gpu]
    for own in evidence.ops:
        methods = own.column("timing_method")
        strange = ~np.isin(methods.astype(str), allowed)
        if strange.any():
            names = ", ".join(sorted(set(methods[strange])))
            message = f"rows are timed by {names}, and this platform's methods are {', '.join(allowed)}"
            cases = own.ids(strange)
            advice = "a row bound by the host is no measurement: measure it again"
            yield Finding(
                "timing", BLOCKING, own.table, message, advice, "timing_method", len(cases), some(cases)
            )
        throttled = own.column("throttled").astype(bool)
        if throttled.any():
            cases = own.ids(throttled)
            nodes = sorted(set(own.column("node")[throttled]))
            message = f"rows were throttled, on {', '.join(some(nodes))}"
            advice = "look at power and cooling of these nodes, then: python -m opatlas retry --node"
            yield Finding(
                "timing", ADVISORY, own.table, message, advice, "throttled", len(cases), some(cases)
            )
