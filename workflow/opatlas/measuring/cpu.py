"""Timing on the CPU: pinned threads, cold weights, the wall clock."""

from __future__ import annotations

import os
import platform
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from opatlas.measuring.caches import cache_hashes
from opatlas.measuring.call import Call
from opatlas.measuring.device import undisturbed
from opatlas.measuring.honesty import require_recomputed, run_guarded, sampled
from opatlas.measuring.measurement import Measurement
from opatlas.measuring.pool import Pool
from opatlas.measuring.rotation import copies_for_cold, sets_for_warm
from opatlas.measuring.sampling import Rest, Sample, Sampler, Stop
from opatlas.measuring.settings import Settings

MOST_COPIES = 4096
"""Below 1/4096 of the cache a copy is so small that its misses do not show."""


class CpuDevice:
    """The CPU, on `cpu_threads` cores that this process has for itself where it can."""

    def __init__(self, settings: Settings) -> None:
        self.torch_device = torch.device("cpu")
        self.settings = settings
        self.cache_bytes = last_level_cache_bytes()
        self._pool = Pool(self.torch_device, unused_bytes)
        self._cores, self._claims = claim_cores(settings.cpu_threads)
        os.sched_setaffinity(0, self._cores)
        torch.set_num_threads(settings.cpu_threads)
        torch.set_grad_enabled(False)

    def copies(self, bytes_read: int, bytes_held: int = 0) -> int:
        return min(MOST_COPIES, copies_for_cold(bytes_read, self.cache_bytes))

    def sets(self, bytes_per_call: int) -> int:
        return sets_for_warm(bytes_per_call, self.cache_bytes)

    def normal(self, shape: Sequence[int], dtype: Any, scale: float = 1.0) -> Any:
        return self._pool.normal(shape, dtype, scale)

    def free_bytes(self) -> int:
        return unused_bytes() + self._pool.free_bytes

    def measure(self, call: Call) -> Measurement:
        try:
            with undisturbed():
                return self._measure(call)
        finally:
            self._pool.rewind()

    def _measure(self, call: Call) -> Measurement:
        run = call.run
        first = run_guarded(lambda: run(0)) if call.inputs == "random" else run(0)
        require_recomputed(sampled(first), first, lambda: run(0))
        del first
        done = 0

        def timed(calls: int) -> float:
            nonlocal done
            begin = time.perf_counter_ns()
            for i in range(done, done + calls):
                run(i)
            end = time.perf_counter_ns()
            done += calls
            return (end - begin) / calls * 1e-6

        sampler = Sampler(self.settings, self.settings.cpu_budget_s, time.perf_counter())
        estimate = timed(1)
        calls = max(1, round(self.settings.cpu_sample_s * 1e3 / estimate))
        while not isinstance(step := sampler.next(time.perf_counter()), Stop):
            if isinstance(step, Rest):
                time.sleep(step.seconds)
            else:
                sampler.took(Sample(timed(calls)))
        summary = sampler.summary()
        return Measurement(
            latency=summary.latency,
            latency_mad=summary.latency_mad,
            latency_ci=summary.latency_ci,
            samples=summary.samples,
            stop_reason=step.reason,
            timing_method="cpu_perf_counter",
            notes={
                "calls_per_sample": calls,
                "copies": call.copies,
                "sets": call.sets,
                "bytes_between_uses": (call.copies - 1) * call.bytes_per_copy,
                "cache_bytes": self.cache_bytes,
                "inputs": call.inputs,
                "far_outliers": summary.far_outliers,
            },
        )

    def facts(self) -> dict[str, Any]:
        return {
            "device": processor_name(),
            "machine": platform.machine(),
            "cores": sorted(self._cores),
            "cores_shared": len(self._claims) < len(self._cores),
            "threads": self.settings.cpu_threads,
            "cache_bytes": self.cache_bytes,
            "timer": "time.perf_counter_ns",
            "capability": torch.backends.cpu.get_cpu_capability(),
            "caches": cache_hashes(os.environ),
        }

    def check_alone(self) -> None:
        """A CPU always runs something else too; its noise shows in the interval of the row."""

    def synchronize(self) -> None:
        """Calls on the CPU return when they are done."""

    def reset(self) -> None:
        self._pool.clear()


def unused_bytes() -> int:
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def last_level_cache_bytes() -> int:
    """Size of the largest cache of core 0; 32 MiB where the kernel does not tell."""
    sizes = [1 << 25]
    try:
        for file in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
            sizes.append(int(file.read_text().strip().rstrip("K")) * 1024)
    except (OSError, ValueError):
        return sizes[0]
    return max(sizes[1:], default=sizes[0])


def processor_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def claim_cores(count: int) -> tuple[set[int], list[socket.socket]]:
    """(cores to run on, claims on them): claimed by no other process measuring on this machine.

    A claim is a socket in the abstract namespace, so it ends with the process. Where fewer cores are
    free than asked for, the rest is shared with others.
    """
    allowed = sorted(os.sched_getaffinity(0), reverse=True)
    mine: list[int] = []
    claims = []
    for core in allowed:
        if len(mine) == count:
            break
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claim.bind(f"\0opatlas-core-{core}")
        except OSError:
            claim.close()
        else:
            mine.append(core)
            claims.append(claim)
    shared = [core for core in allowed if core not in mine][: count - len(mine)]
    return {*mine, *shared}, claims
