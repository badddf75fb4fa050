"""A GPU's burst timer played from a script."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from opatlas.measuring.bursts import Burst
from opatlas.measuring.nvml import Reading


class FakeTimer:
    """Plays bursts in order, the last one for ever; its clock moves a millisecond a burst."""

    nominal_clock = 1980.0

    def __init__(self, script: Iterable[Burst]) -> None:
        self.script = list(script)
        self.now = 0.0
        self.rests: list[float] = []
        self.done: list[Any] = []

    def time(
        self,
        work: Callable[[], Any],
        expected_s: float,
        lead: Callable[[], Any] | None = None,
        least_clock: float = 0.0,
    ) -> Burst:
        self.now += 0.001
        self.done.append(work)
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    def run(self, work: Callable[[], Any], expected_s: float) -> Any:
        return work()

    def rest(self, seconds: float) -> None:
        self.now += seconds
        self.rests.append(seconds)


def burst(
    clock: float = 1980.0,
    reasons: Iterable[str] = (),
    seconds: float = 0.0011,
    hidden: bool = True,
    before: float | None = None,
    power: float | None = None,
) -> Burst:
    """A burst whose clock was `before` (if not the same) and `clock` meanwhile."""
    reading = Reading(int(clock), tuple(reasons), 45, power)
    return Burst(seconds, before or clock, clock, hidden, reading)
