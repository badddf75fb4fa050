"""The result of timing one call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

TIMING_METHODS = ("cuda_graph", "blocked_eager", "cupti", "cpu_perf_counter")
STOP_REASONS = ("converged", "budget", "max_samples")


@dataclass(frozen=True)
class Measurement:
    """Times in milliseconds, clocks in MHz, power in watts; None where nothing was asked or read.

    `latency` is the median of `samples` samples, `latency_mad` their median absolute deviation,
    `latency_ci` the half width of the distribution-free 95 % confidence interval of the median.
    `kernels` names the device kernels of one call, in order of launch. `notes` tells how the number
    came about: calls per sample, copies, bytes touched between two uses of a copy, outliers, ...
    """

    latency: float
    latency_mad: float
    latency_ci: float
    samples: int
    stop_reason: str
    timing_method: str
    sm_clock_mhz: float | None = None
    throttled: bool = False
    power_w: float | None = None
    latency_sustained: float | None = None
    sm_clock_sustained_mhz: float | None = None
    kernels: tuple[str, ...] = ()
    notes: dict[str, Any] = field(default_factory=dict)
