"""The calls of a case made ready for bursts, and the loop that samples them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from opatlas.measuring.bursts import Burst
from opatlas.measuring.call import Call
from opatlas.measuring.graphs import Graph, kernels_of_a_call
from opatlas.measuring.honesty import require_recomputed, sampled
from opatlas.measuring.measurement import Measurement
from opatlas.measuring.nvml import POWER_CAP
from opatlas.measuring.rotation import Rotation
from opatlas.measuring.sampling import Rest, Sample, Sampler, Stop
from opatlas.measuring.settings import Settings
from opatlas.measuring.statistics import median


class Timer(Protocol):
    """What the loop needs of a BurstTimer."""

    nominal_clock: float

    def time(
        self,
        work: Callable[[], Any],
        expected_s: float,
        lead: Callable[[], Any] | None = None,
        least_clock: float = 0.0,
    ) -> Burst: ...

    def rest(self, seconds: float) -> None: ...


@dataclass
class Work:
    """Bursts that are run in turn: `calls[b]` calls in burst b, after `lead`, which is not timed.

    `overhead_s` is what timing a burst costs beside its calls. `kernels` are those of one call.
    """

    method: str
    bursts: Sequence[Callable[[], Any]]
    calls: Sequence[int]
    overhead_s: float
    lead: Callable[[], Any] | None = None
    kernels: tuple[str, ...] = ()
    graphs: list[Graph] = field(default_factory=list)
    lead_kernels: int = 0

    def release(self) -> None:
        for graph in self.graphs:
            graph.release()


def captured(
    call: Call,
    rotation: Rotation,
    evict: Callable[[], Any],
    pool: Any,
    overhead_s: float,
    spaced: Callable[[Callable[[], Any], int], Any],
) -> Work:
    """Each burst as a graph whose replay is proven to compute; NotCaptured where there can be none.

    `spaced(work, calls)` runs work of so many calls when the device may be loaded again.
    """
    graphs: list[Graph] = []
    try:
        for order in rotation.orders:
            graphs.append(Graph(call.run, order, pool, call.sets))
        first, timed = graphs[0], list(graphs)
        kernels = kernels_of_a_call([(graph.nodes, len(graph.order)) for graph in timed])
        expected = sampled(spaced(lambda: call.run(first.order[-1]), 1))

        def again() -> Any:
            spaced(first.replay, len(first.order))
            return first.output

        require_recomputed(expected, first.output, again)
        lead = None
        if rotation.evict:
            graphs.append(Graph(_leader(call, rotation, evict), rotation.lead, pool))
            lead = graphs[-1].replay
    except BaseException:
        for graph in graphs:
            graph.release()
        raise
    replays = [graph.replay for graph in timed]
    calls = [len(graph.order) for graph in timed]
    lead_kernels = len(graphs[-1].nodes) if lead else 0
    return Work("cuda_graph", replays, calls, overhead_s, lead, kernels, graphs, lead_kernels)


def queued(call: Call, rotation: Rotation, evict: Callable[[], Any], overhead_s: float) -> Work:
    """Each burst as plain calls, to be queued while the device is blocked."""
    target = call.run(0)
    require_recomputed(sampled(target), target, lambda: call.run(0))

    def burst(run: Callable[[int], Any], order: Sequence[int]) -> Callable[[], Any]:
        def calls() -> None:
            for i in order:
                run(i)

        return calls

    lead = burst(_leader(call, rotation, evict), rotation.lead)
    return Work(
        "blocked_eager",
        [burst(call.run, order) for order in rotation.orders],
        [len(order) for order in rotation.orders],
        overhead_s,
        lead if rotation.evict else None,
    )


def _leader(call: Call, rotation: Rotation, evict: Callable[[], Any]) -> Callable[[int], Any]:
    """The calls of a lead: the first evicts, each makes one set of activations warm."""

    def lead(i: int) -> Any:
        if i == rotation.lead[0]:
            evict()
        return call.run(i)

    return lead


def measure_work(
    work: Work,
    timer: Timer,
    settings: Settings,
    call_s: float,
    clock: Callable[[], float] = time.perf_counter,
) -> Measurement:
    """Samples until the rule of `settings` says stop; `call_s` is the estimated time of one call.

    InvalidMeasurement where the host could not be hidden, or the samples say nothing.
    """
    long_calls = call_s > settings.burst_s
    sampler = Sampler(settings, settings.budget_s, clock(), long_calls)
    floor = settings.clock_floor * timer.nominal_clock
    turn = 0
    powers: list[float] = []
    reasons: set[str] = set()
    temperature: int | None = None
    while not isinstance(step := sampler.next(clock()), Stop):
        if isinstance(step, Rest):
            timer.rest(step.seconds)
            continue
        which = turn % len(work.bursts)
        turn += 1
        least = 0.0 if sampler.accepts_low_clock else floor
        burst = timer.time(work.bursts[which], work.calls[which] * call_s, work.lead, least)
        reasons.update(burst.reading.reasons)
        temperature = burst.reading.temperature_c
        if burst.reading.power_w is not None:
            powers.append(burst.reading.power_w)
        if not burst.hidden:
            sampler.void("host_bound")
        elif burst.clock_before < least:
            sampler.void("low_clock")
        else:
            latency = (burst.seconds - work.overhead_s) / work.calls[which] * 1e3
            # NVML names a power cap for a while after the clock is back, so the clock decides there.
            others = set(burst.reading.reasons) - {POWER_CAP}
            throttled = bool(others) or burst.clock < floor
            by_itself = long_calls and burst.clock_before >= floor and not others
            sampler.took(Sample(latency, burst.clock, throttled, by_itself))
    summary = sampler.summary()
    return Measurement(
        latency=summary.latency,
        latency_mad=summary.latency_mad,
        latency_ci=summary.latency_ci,
        samples=summary.samples,
        stop_reason=step.reason,
        timing_method=work.method,
        sm_clock_mhz=summary.sm_clock_mhz,
        throttled=summary.throttled,
        power_w=median(powers) if powers else None,
        kernels=work.kernels,
        notes={
            "calls_per_sample": list(work.calls),
            "far_outliers": summary.far_outliers,
            "void_samples": dict(sampler.voids),
            "repeated_sets": sampler.repeats,
            "throttle_reasons": sorted(reasons),
            "temperature_c": temperature,
        },
    )
