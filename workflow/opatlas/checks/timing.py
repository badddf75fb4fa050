"""Rows are timed on the device: a row bound by the host is never stored as a good one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opatlas.checks.evidence import Evidence, OpRows
from opatlas.checks.finding import ADVISORY, BLOCKING, Finding, some
from opatlas.measuring.measurement import TIMING_METHODS
from opatlas.ops.spec import Array

NAME = "timing"
HOST_CLOCK = "cpu_perf_counter"


def check(evidence: Evidence) -> Iterator[Finding]:
    on_gpu = evidence.planned.dataset.platform.sm is not None
    allowed = [method for method in TIMING_METHODS if (method != HOST_CLOCK) == on_gpu]
    for own in evidence.ops:
        codes, methods = own.codes("timing_method")
        strange = [code for code, method in enumerate(methods) if method not in allowed]
        if strange:
            found = ", ".join(sorted(methods[code] for code in strange))
            message = f"rows are timed by {found}, and this platform's methods are {', '.join(allowed)}"
            advice = "a row bound by the host is no measurement: measure it again"
            yield _finding(own, BLOCKING, message, advice, "timing_method", np.isin(codes, strange))
        throttled = own.column("throttled").astype(bool)
        if throttled.any():
            codes, names = own.codes("node")
            nodes = sorted(names[code] for code in set(codes[throttled].tolist()))
            message = f"rows were throttled, on {', '.join(some(nodes))}"
            advice = "look at power and cooling of these nodes, then: python -m opatlas retry --node"
            yield _finding(own, ADVISORY, message, advice, "throttled", throttled)


def _finding(own: OpRows, severity: str, message: str, advice: str, column: str, chosen: Array) -> Finding:
    cases = own.ids(chosen)
    return Finding(NAME, severity, own.table, message, advice, column, len(cases), some(cases))
