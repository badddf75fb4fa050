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

LEAD_CYCLES = 150_000
"""About 75 us of blocking, so that the first event is reached only when the block behind it is queued.
When the host takes longer for that, the block does not tell the clock, and NVML is asked."""

FIRST_GUESS_MHZ = 2000.0
"""A clock to start the calibration with."""

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
    lower. `hidden` says whether everything was queued before the device could begin. `seconds` is 0
    where the clock was too low to begin at all.
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
        self._in_time = False
        self.nominal_clock = FIRST_GUESS_MHZ
        self._calibrate()

    def time(
        self,
        work: Callable[[], Any],
        expected_s: float,
        lead: Callable[[], Any] | None = None,
        least_clock: float = 0.0,
    ) -> Burst:
        """Runs `lead` untimed and then `work`, once the duty allows.

        Work longer than a burst is begun only at `least_clock`, since it would heat the device for
        nothing. A burst that the host could not queue in time makes the next one block for longer.
        """
        _, closed, begin, end = self._events
        if expected_s > self._settings.burst_s and least_clock:
            self._wait(0.0)
            self._block_device()
            closed.synchronize()
            reading = self._nvml.read(self._settings.power)
            if (clock := self._clock(reading)) < least_clock:
                return Burst(0.0, clock, clock, True, reading)
        # The block needs no rest before it: it is one thread's work.
        self._wait((LEAD_CYCLES + self._block) * 1e-6 / self.nominal_clock)
        self._block_device()
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
        before = self._clock(reading)
        during = (long and reading.sm_clock_mhz) or before
        self._duty.worked(closed.elapsed_time(end) * 1e-3, time.perf_counter())
        # Grow fast, so that few samples are lost; fall back slowly, since the next case may be quick.
        longer = 2 * self._block if not hidden else self._block - self._block // 16
        self._block = max(LEAST_BLOCK_CYCLES, min(MOST_BLOCK_CYCLES, longer))
        seconds = begin.elapsed_time(end) * 1e-3
        return Burst(seconds, before, min(before, during), hidden, reading)

    def run(self, work: Callable[[], Any], expected_s: float) -> Any:
        """Runs or queues work that is not timed, but is part of the duty."""
        self._wait(0.0)
        result = work()
        self._duty.worked(expected_s, time.perf_counter() + expected_s)
        return result

    def _wait(self, ahead_s: float) -> None:
        """Sleeps until `ahead_s` before the duty allows work."""
        while (wait := self._duty.wait(time.perf_counter()) - ahead_s) > 0:
            time.sleep(wait)

    def _block_device(self) -> None:
        """Queues a spin of `_block` cycles between two events, behind a spin that hides the first."""
        torch.cuda._sleep(LEAD_CYCLES)
        begun = time.perf_counter()
        self._events[0].record()
        torch.cuda._sleep(self._block)
        queued_s = time.perf_counter() - begun
        self._events[1].record()
        self._in_time = queued_s < LEAD_CYCLES * 1e-6 / self.nominal_clock

    def _clock(self, reading: Reading) -> float:
        """MHz during the last block, once it has ended; NVML's where the host was late for it."""
        if not self._in_time and reading.sm_clock_mhz:
            return reading.sm_clock_mhz
        blocked_s = self._events[0].elapsed_time(self._events[1]) * 1e-3 - self._spin_overhead_s
        return float(self._block / blocked_s * 1e-6)

    def pair(self) -> tuple[Any, Any]:
        """Two timing events that no burst in flight uses."""
        return self._events[2], self._events[3]

    def rest(self, seconds: float) -> None:
        """Lets the clock come back: a hot device idles; one that has fallen asleep is woken."""
        time.sleep(seconds / 2)
        torch.cuda._sleep(int(seconds / 2 * self.nominal_clock * 1e6))
        torch.cuda.synchronize()

    def _calibrate(self) -> None:
        """Finds the nominal clock, and what an event pair adds to the time of the spin between."""
        torch.cuda._sleep(100 * LEAST_BLOCK_CYCLES)
        times = []
        lengths = LEAST_BLOCK_CYCLES, 10 * LEAST_BLOCK_CYCLES
        for self._block in lengths:
            blocks = []
            for _ in range(9):
                self._block_device()
                self._events[1].synchronize()
                blocks.append(self._events[0].elapsed_time(self._events[1]) * 1e-3)
            times.append(median(blocks))
        cycle_s = (times[1] - times[0]) / (lengths[1] - lengths[0])
        self.nominal_clock = 1e-6 / cycle_s
        self._spin_overhead_s = times[0] - lengths[0] * cycle_s
        self._block = LEAST_BLOCK_CYCLES
