"""One burst of GPU work, timed between events behind a blocking kernel, with the clock before it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from opatlas.measuring.duty import Duty
from opatlas.measuring.nvml import Nvml, Reading
from opatlas.measuring.settings import Settings
from opatlas.measuring.statistics import median

LEAD_CYCLES = 100_000
"""About 50 us of blocking, so that the first event is reached only after the second is queued."""

LEAST_BLOCK_CYCLES = 200_000
"""About 100 us: enough to queue a graph, and to know the clock to 0.1 %."""

MOST_BLOCK_CYCLES = 40_000_000
"""About 20 ms. A host that needs longer to queue a burst cannot be hidden."""

LONG_S = 0.002
"""In a longer burst the clock may fall, so it is read in the middle and not only before."""


@dataclass(frozen=True)
class Burst:
    """`seconds` from the first event to the second, and clocks in MHz.

    `clock_before` is measured; `clock` is that, or NVML's in the middle of a long burst if that is
    lower. `hidden` says whether everything was queued before the device could begin.
    """

    seconds: float
    clock_before: float
    clock: float
    hidden: bool
    reading: Reading


class BurstTimer:
    """Times bursts on the current stream, keeping to the duty.

    The device first spins for a known number of cycles, which gives its clock and gives the host the
    time to queue the work; so the host's launch cost is no part of what is timed.
    """

    def __init__(self, settings: Settings, nvml: Nvml) -> None:
        self._settings = settings
        self._nvml = nvml
        self._duty = Duty(settings.duty)
        self._events = [torch.cuda.Event(enable_timing=True) for _ in range(4)]
        self._block = LEAST_BLOCK_CYCLES
        self._spin_overhead_s = 0.0
        self.nominal_clock = 0.0
        self._calibrate()

    def time(
        self,
        work: Callable[[], Any],
        expected_s: float,
        lead: Callable[[], Any] | None = None,
    ) -> Burst:
        """Runs `lead` untimed and then `work`, once the duty allows.

        A burst that the host could not queue in time makes the next one block for longer.
        """
        opened, closed, begin, end = self._events
        while wait := self._duty.wait(time.perf_counter()):
            time.sleep(wait)
        torch.cuda._sleep(LEAD_CYCLES)
        opened.record()
        torch.cuda._sleep(self._block)
        closed.record()
        if lead is not None:
            lead()
        begin.record()
        work()
        end.record()
        hidden = not closed.query()
        long = expected_s > LONG_S
        if long:
            time.sleep(expected_s / 2)
        reading = self._nvml.read(self._settings.power)
        end.synchronize()
        blocked = opened.elapsed_time(closed) * 1e-3 - self._spin_overhead_s
        before = self._block / blocked * 1e-6
        during = (long and reading.sm_clock_mhz) or before
        self._duty.worked(closed.elapsed_time(end) * 1e-3, time.perf_counter())
        # Grow fast, so that few samples are lost; fall back slowly, since the next case may be quick.
        longer = 2 * self._block if not hidden else self._block - self._block // 16
        self._block = max(LEAST_BLOCK_CYCLES, min(MOST_BLOCK_CYCLES, longer))
        seconds = begin.elapsed_time(end) * 1e-3
        return Burst(seconds, before, min(before, during), hidden, reading)

    def pair(self) -> tuple[Any, Any]:
        """Two timing events that no burst in flight uses."""
        return self._events[2], self._events[3]

    def rest(self, seconds: float, throttled: bool) -> None:
        """Lets the clock come back: a hot device idles, one that has fallen asleep spins."""
        if throttled:
            time.sleep(seconds)
        else:
            torch.cuda._sleep(int(seconds * 2e9))
            torch.cuda.synchronize()

    def _calibrate(self) -> None:
        """Finds the nominal clock, and what an event pair adds to the time of the spin between."""
        short, long = LEAST_BLOCK_CYCLES, 10 * LEAST_BLOCK_CYCLES
        times: dict[int, list[float]] = {short: [], long: []}
        torch.cuda._sleep(20 * long)
        for _ in range(9):
            for cycles, seconds in times.items():
                self._block = cycles
                self.time(lambda: None, 0.0)
                seconds.append(self._events[0].elapsed_time(self._events[1]) * 1e-3)
        self._block = LEAST_BLOCK_CYCLES
        cycle_s = (median(times[long]) - median(times[short])) / (long - short)
        self.nominal_clock = 1e-6 / cycle_s
        self._spin_overhead_s = median(times[short]) - short * cycle_s
