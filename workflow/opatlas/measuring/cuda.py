"""Timing on one NVIDIA GPU: graphs of calls, else queued calls, else CUPTI."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from opatlas.measuring.bursts import Burst, BurstTimer
from opatlas.measuring.caches import cache_hashes
from opatlas.measuring.call import Call
from opatlas.measuring.cupti import alone, measure_traced, record, span
from opatlas.measuring.device import undisturbed
from opatlas.measuring.errors import InvalidMeasurement
from opatlas.measuring.graphs import Graph, NotCaptured
from opatlas.measuring.honesty import run_guarded
from opatlas.measuring.measurement import Measurement
from opatlas.measuring.nvml import Nvml
from opatlas.measuring.pool import Pool
from opatlas.measuring.rotation import (
    MARGIN,
    MOST_CALLS,
    PLACES,
    Rotation,
    copies_for_cold,
    cut,
    sets_for_warm,
)
from opatlas.measuring.sampling import FIRST_REST_S
from opatlas.measuring.settings import Settings
from opatlas.measuring.statistics import median
from opatlas.measuring.work import Work, captured, measure_work, queued

CALIBRATION_CALLS = (8, 64)
"""Lengths of two bursts of a tiny kernel, whose difference gives the cost of starting a burst."""


PLACES_SHARE = 0.03
"""Share of the memory that copies may take for the sake of more places than coldness needs."""

MOST_TRACED = 100
"""Bursts that CUPTI records at most, to stay within its buffers."""

ESTIMATES = 4
"""Runs of a call to estimate its time, until the host kept ahead of one: else it seems long."""


class CudaDevice:
    """The first visible GPU. All work runs on one stream of its own."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.torch_device = torch.device("cuda", 0)
        self._properties: Any = torch.cuda.get_device_properties(0)
        self.cache_bytes = int(self._properties.L2_cache_size)
        self._nvml = Nvml(f"GPU-{self._properties.uuid}")
        # A driver may number processes otherwise than their container does; so ours is the one that
        # appears when the context is made.
        others = self._nvml.processes()
        torch.cuda.set_stream(torch.cuda.Stream())
        torch.set_grad_enabled(False)
        words = MARGIN * self.cache_bytes // 4
        self._eviction = torch.ones(words, dtype=torch.int32, device=self.torch_device)
        torch.cuda.synchronize()
        self._own = (self._nvml.processes() - others) | {os.getpid()}
        self._pool = Pool(self.torch_device, _unreserved_bytes)
        self._timer = BurstTimer(settings, self._nvml)
        self._renew_graph_memory()
        self._graph_overhead_s, self._queue_overhead_s = self._calibrate()
        self._warm_up()

    def copies(self, bytes_read: int, bytes_held: int = 0) -> int:
        cold = copies_for_cold(bytes_read, self.cache_bytes)
        places = PLACES_SHARE * self._properties.total_memory // max(bytes_read, bytes_held, 1)
        return min(MOST_CALLS, max(cold, min(PLACES, int(places)) if bytes_read else 1))

    def sets(self, bytes_per_call: int) -> int:
        return sets_for_warm(bytes_per_call, self.cache_bytes)

    def normal(self, shape: Sequence[int], dtype: Any, scale: float = 1.0) -> Any:
        return self._pool.normal(shape, dtype, scale)

    def free_bytes(self) -> int:
        cached = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
        return int(_unreserved_bytes() + cached + self._pool.free_bytes)

    def facts(self) -> dict[str, Any]:
        return {
            "device": self._properties.name,
            "sm": 10 * self._properties.major + self._properties.minor,
            "uuid": f"GPU-{self._properties.uuid}",
            "multiprocessors": self._properties.multi_processor_count,
            "memory_bytes": self._properties.total_memory,
            "cache_bytes": self.cache_bytes,
            **self._nvml.facts(),
            "other_processes": sorted(self._nvml.processes() - self._own),
            "sm_clock_nominal_mhz": round(self._timer.nominal_clock, 1),
            "graph_overhead_us": round(self._graph_overhead_s * 1e6, 3),
            "queue_overhead_us": round(self._queue_overhead_s * 1e6, 3),
            "timer": f"cudaEvent, CUDA {torch.version.cuda}",
            "caches": cache_hashes(os.environ),
        }

    def check_alone(self) -> None:
        others = sorted(self._nvml.processes() - self._own)
        if others:
            raise InvalidMeasurement("contended", f"processes {others} compute on the GPU too")

    def synchronize(self) -> None:
        torch.cuda.synchronize()

    def reset(self) -> None:
        self._pool.clear()
        # Memory once used for graphs or by plain runs serves the next ones; but it must not pile up.
        piled = torch.cuda.memory_reserved() - self._pool.bytes
        if piled > self._properties.total_memory // 4:
            self._renew_graph_memory()
            torch.cuda.empty_cache()

    def measure(self, call: Call) -> Measurement:
        try:
            with undisturbed():
                return self._measure(call)
        finally:
            self._pool.rewind()

    def cross_check(self, call: Call) -> tuple[Measurement, list[float]]:
        """Measures the call, then lets another clock time the very same graphs, as often.

        The list holds CUPTI's first start to last end of each call in ms; of bursts at full clock if
        there was any, and empty where the call was not captured.
        """
        spans: list[float] = []

        def look(work: Work, call_s: float, samples: int) -> None:
            spans.extend(self._spans(work, call_s, min(samples, MOST_TRACED)))

        try:
            with undisturbed():
                return self._measure(call, look), spans
        finally:
            self._pool.rewind()

    def _spans(self, work: Work, call_s: float, bursts: int) -> list[float]:
        least = self.settings.clock_floor * self._timer.nominal_clock
        taken: list[Burst] = []

        def run() -> None:
            for turn in range(3 * bursts):
                which = turn % len(work.bursts)
                expected_s = work.calls[which] * call_s
                burst = self._timer.time(work.bursts[which], expected_s, work.lead, least)
                if burst.seconds:
                    taken.append(burst)
                else:
                    self._timer.rest(FIRST_REST_S)
                if sum(b.clock_before >= least for b in taken) == bursts:
                    break

        pieces = record(run)
        good = [burst.clock_before >= least for burst in taken]
        return [
            span(activities[start : start + len(work.kernels)]) * 1e-6
            for at_full_clock, activities in zip(good, pieces, strict=True)
            if at_full_clock or not any(good)
            for start in range(work.lead_kernels, len(activities), len(work.kernels))
        ]

    def _measure(
        self, call: Call, look: Callable[[Work, float, int], None] = lambda work, call_s, samples: None
    ) -> Measurement:
        """`look` is shown captured work, the seconds of a call, and how many samples it took."""
        if call.inputs == "random":
            run_guarded(lambda: call.run(0))
        call_s, rotation = self._size(call)
        notes = {
            "copies": call.copies,
            "sets": call.sets,
            "evicted": rotation.evict,
            "bytes_between_uses": rotation.bytes_between_uses,
            "inputs": call.inputs,
        }
        try:
            work = self._captured(call, rotation, call_s)
        except NotCaptured as error:
            notes["not_captured"] = str(error)
            measured = self._measure_uncaptured(call, rotation, call_s)
        else:
            try:
                measured = measure_work(work, self._timer, self.settings, call_s)
                if self.settings.sustained:
                    measured = self._sustained(work, measured)
                look(work, call_s, measured.samples)
            finally:
                work.release()
        call.require_kernel(measured.kernels)
        return replace(measured, notes={**notes, **measured.notes})

    def _size(self, call: Call) -> tuple[float, Rotation]:
        """Seconds of one call, roughly, and the bursts that follow from it.

        The call must have run before: its first run may compile or tune.
        """
        call_s = float("inf")
        for _ in range(ESTIMATES):
            burst = self._timer.time(lambda: call.run(0), 0.0)
            call_s = min(call_s, max(1e-6, burst.seconds - self._queue_overhead_s))
            if burst.hidden:
                break
        sizes = call.copies, call.bytes_per_copy, call.sets, self.cache_bytes
        return call_s, cut(*sizes, call_s, self.settings.sample_s, self.settings.burst_s)

    def _captured(self, call: Call, rotation: Rotation, call_s: float) -> Work:
        try:
            return captured(
                call,
                rotation,
                self._evict,
                self._graph_memory,
                self._graph_overhead_s,
                lambda work, calls: self._timer.run(work, calls * call_s),
            )
        except BaseException:
            self._renew_graph_memory()
            raise

    def _measure_uncaptured(self, call: Call, rotation: Rotation, call_s: float) -> Measurement:
        work = queued(call, rotation, self._evict, self._queue_overhead_s)
        try:
            measured = measure_work(work, self._timer, self.settings, call_s)
        except InvalidMeasurement as error:
            if error.reason != "host_bound":
                raise
            return measure_traced(call, self._evict, self.settings)
        ran = record(lambda: alone(lambda: call.run(0)))[0]
        return replace(measured, kernels=tuple(activity.name for activity in ran))

    def _evict(self) -> None:
        """Reads MARGIN caches of data that no case uses."""
        self._eviction.sum()

    def _sustained(self, work: Work, measured: Measurement) -> Measurement:
        """Adds latency and clock once the device has worked without a pause for `sustained_s`."""
        begin, end = self._timer.pair()
        calls = sum(work.calls)
        latencies: list[float] = []
        clocks: list[float] = []
        until = time.perf_counter() + self.settings.sustained_s
        rounds = 1
        while (now := time.perf_counter()) < until or not latencies:
            begin.record()
            for _ in range(rounds):
                for burst in work.bursts:
                    burst()
            end.record()
            clocks.append(self._nvml.read().sm_clock_mhz or self._timer.nominal_clock)
            end.synchronize()
            latencies.append(begin.elapsed_time(end) / rounds / calls)
            # Stretches of about 20 ms: long beside the gap that asking for the time leaves.
            if time.perf_counter() - now < 0.01:
                rounds *= 2
        settled = -(-len(latencies) // 4)
        return replace(
            measured,
            latency_sustained=median(latencies[-settled:]),
            sm_clock_sustained_mhz=median(clocks[-settled:]),
        )

    def _renew_graph_memory(self) -> None:
        """A private pool for all graphs, held by one that does nothing, so that it is not returned."""
        self._graph_memory = torch.cuda.graph_pool_handle()
        self._holder = Graph(lambda i: self._eviction[:1] + 1, (0,), self._graph_memory)

    def _warm_up(self) -> None:
        """Loads libraries and kernels that every case uses, so that the first case costs no more."""
        x = self.normal((256, 256), torch.bfloat16)
        self.measure(Call(lambda i: x @ x))
        self._pool.clear()

    def _calibrate(self) -> tuple[float, float]:
        """Seconds that timing a burst costs beside its calls, for a graph and for queued calls."""
        cell = torch.zeros(1, device=self.torch_device)
        call = Call(lambda i: cell.add_(1))
        call.run(0)

        def cost(work_of: Callable[[int], Callable[[], Any]]) -> float:
            times = {}
            for calls in CALIBRATION_CALLS:
                work = work_of(calls)
                bursts = [self._timer.time(work, 0.0) for _ in range(15)]
                times[calls] = median([burst.seconds for burst in bursts if burst.hidden])
            short, long = CALIBRATION_CALLS
            per_call = (times[long] - times[short]) / (long - short)
            return times[short] - short * per_call

        return (
            cost(lambda calls: Graph(call.run, range(calls), self._graph_memory).replay),
            cost(lambda calls: lambda: [call.run(i) for i in range(calls)]),
        )


def _unreserved_bytes() -> int:
    return int(torch.cuda.mem_get_info()[0])
