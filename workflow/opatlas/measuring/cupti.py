"""Kernel times as CUPTI records them, through PyTorch's profiler: the cross-check and the last resort."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch

from opatlas.measuring.call import Call
from opatlas.measuring.errors import InvalidMeasurement
from opatlas.measuring.measurement import Measurement
from opatlas.measuring.sampling import Sample, Sampler, Stop
from opatlas.measuring.settings import Settings
from opatlas.measuring.statistics import median

MARKER = "spin_kernel"
"""Name of the kernel of torch.cuda._sleep, which separates one traced piece of work from the next."""

TRACED_CALLS = 10
"""Calls that one trace takes: starting the profiler costs far more than they do."""

HOST_SHARE = 0.1
"""A traced call waits for the host if no kernel runs in more than this share of its span."""


class Activity(NamedTuple):
    """One kernel, copy or fill on the device; times in ns on CUPTI's clock."""

    start: int
    end: int
    name: str


def span(activities: Sequence[Activity]) -> int:
    """First start to last end, in ns."""
    return max(a.end for a in activities) - min(a.start for a in activities)


def busy(activities: Sequence[Activity]) -> int:
    """Time in ns in which at least one activity runs: overlapping ones count once."""
    total, reached = 0, 0
    for activity in sorted(activities):
        total += max(0, activity.end - max(activity.start, reached))
        reached = max(reached, activity.end)
    return total


def record(run: Callable[[], Any]) -> list[list[Activity]]:
    """What the device does while `run` runs, in order of start, cut at each marker."""
    profiler: Any = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA], acc_events=True)
    with profiler:
        run()
        torch.cuda.synchronize()
    return split(
        sorted(
            Activity(event.start_ns(), event.start_ns() + event.duration_ns(), event.name())
            for event in profiler.profiler.kineto_results.events()
            if event.device_type() == torch.profiler.DeviceType.CUDA
        )
    )


def alone(work: Callable[[], Any]) -> None:
    """Runs the work as a piece of its own, on an idle device."""
    torch.cuda._sleep(1)
    torch.cuda.synchronize()
    work()
    torch.cuda.synchronize()


def split(activities: Sequence[Activity]) -> list[list[Activity]]:
    """The pieces between markers, without the markers and without empty pieces."""
    pieces: list[list[Activity]] = [[]]
    for activity in activities:
        if MARKER in activity.name:
            pieces.append([])
        else:
            pieces[-1].append(activity)
    return [piece for piece in pieces if piece]


def measure_traced(call: Call, evict: Callable[[], Any], settings: Settings) -> Measurement:
    """Spans of a call that can neither be captured nor queued; its copies are evicted before each.

    InvalidMeasurement("host_bound") where its kernels wait for the host between them.
    """
    sampler = Sampler(settings, settings.budget_s, time.perf_counter())
    idle: list[float] = []
    names: tuple[str, ...] = ()
    cold = bool(call.bytes_per_copy)
    turn = 0

    def some_calls() -> None:
        for i in range(turn, turn + TRACED_CALLS):
            if cold:
                alone(evict)
            alone(partial(call.run, i))

    while not isinstance(step := sampler.next(time.perf_counter()), Stop):
        for activities in record(some_calls)[1 if cold else 0 :: 2 if cold else 1]:
            idle.append(1 - busy(activities) / span(activities))
            sampler.took(Sample(span(activities) * 1e-6))
            names = tuple(activity.name for activity in activities)
        turn += TRACED_CALLS
    if median(idle) > HOST_SHARE:
        raise InvalidMeasurement(
            "host_bound",
            f"the call cannot be queued, and no kernel runs in {median(idle):.0%} of its span",
        )
    summary = sampler.summary()
    return Measurement(
        latency=summary.latency,
        latency_mad=summary.latency_mad,
        latency_ci=summary.latency_ci,
        samples=summary.samples,
        stop_reason=step.reason,
        timing_method="cupti",
        kernels=names,
        notes={"far_outliers": summary.far_outliers, "device_idle_share": median(idle)},
    )
