"""When to take a sample, when to rest, when to stop. Knows neither a clock nor a device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from opatlas.measuring.errors import InvalidMeasurement
from opatlas.measuring.settings import Settings
from opatlas.measuring.statistics import far_outliers, mad, median, median_interval

GROWTH = 1.5
"""Looking after every sample would stop on lucky streaks; so look at geometric sample numbers."""

FIRST_REST_S = 0.005
PATIENCE = 4
"""Budgets that a set may take that would otherwise end as unstable, for a few odd samples."""

MOST_VOIDS = 12
"""So many void samples in a row, with rests that grow by GROWTH, take about 1.2 s."""


@dataclass(frozen=True)
class Take:
    """Take one sample."""


@dataclass(frozen=True)
class Rest:
    """Leave the device alone for so many seconds, then ask again."""

    seconds: float


@dataclass(frozen=True)
class Stop:
    """Enough: `reason` is one of measurement.STOP_REASONS."""

    reason: str


@dataclass(frozen=True)
class Sample:
    """Time of one call in ms, and the SM clock in MHz around it where it is known.

    `throttled` says that the device ran slower than it should, `by_itself` that this call was the
    cause: it began at full clock, and would end as throttled at any repetition.
    """

    latency: float
    clock: float | None = None
    throttled: bool = False
    by_itself: bool = False


@dataclass
class Sampler:
    """Feed it what happened, ask it what to do.

    `next(now)` -> Take, Rest or Stop; then `took(sample)` for a good sample or `void(reason)` for one
    that may not count. The first good sample after the start and after every rest is dropped, since the
    device was idle before it, unless `long_calls`: each call outlasts a burst. From the second sample in
    a row at a low clock on, rests grow. A set that something else throttled is thrown away once, after a
    pause; if it comes back throttled it stays and is flagged.
    """

    settings: Settings
    budget_s: float
    started: float
    long_calls: bool = False
    samples: list[Sample] = field(default_factory=list)
    voids: dict[str, int] = field(default_factory=dict)
    dropped: int = 0
    repeats: int = 0
    accepts_low_clock: bool = False
    """Whether waiting for the nominal clock has been given up."""
    _rest_s: float = 0.0
    _in_a_row: dict[str, int] = field(default_factory=dict)
    _drop: bool = field(init=False)
    _next_look: int = field(init=False)

    def __post_init__(self) -> None:
        self._next_look = self.settings.min_samples
        self._drop = not self.long_calls

    def next(self, now: float) -> Take | Rest | Stop:
        if self._rest_s:
            rest, self._rest_s = self._rest_s, 0.0
            self._drop = self._drop or not self.long_calls
            return Rest(rest)
        reason = self._why_stop(now)
        if reason is None:
            return Take()
        spoilt = self._share(lambda sample: sample.throttled and not sample.by_itself)
        if spoilt and not self.repeats and now - self.started < self.budget_s:
            self.repeats += 1
            self.samples.clear()
            self._next_look = self.settings.min_samples
            self._drop = not self.long_calls
            return Rest(self.settings.pause_s)
        return Stop(reason)

    def took(self, sample: Sample) -> None:
        self._in_a_row.clear()
        if self._drop:
            self._drop = False
            self.dropped += 1
        else:
            self.samples.append(sample)

    def void(self, reason: str) -> None:
        """A sample that may not count: `low_clock`, or a reason of an InvalidMeasurement.

        A device that does not get its clock back is taken as it is and the row is flagged; a host
        that cannot keep ahead of the device ends the measurement.
        """
        self.voids[reason] = self.voids.get(reason, 0) + 1
        row = self._in_a_row[reason] = self._in_a_row.get(reason, 0) + 1
        if reason != "low_clock":
            if row >= MOST_VOIDS:
                raise InvalidMeasurement(reason, f"{row} samples were void since the last good one")
        elif row >= MOST_VOIDS:
            self.accepts_low_clock = True
        elif row > 1:
            self._rest_s = FIRST_REST_S * GROWTH ** (row - 2)

    @property
    def throttled(self) -> bool:
        """Whether more than a tenth of the samples saw a throttled device."""
        return self._share(lambda sample: sample.throttled)

    def _share(self, holds: Callable[[Sample], bool]) -> bool:
        return sum(map(holds, self.samples)) * 10 > len(self.samples)

    @property
    def values(self) -> list[float]:
        return [sample.latency for sample in self.samples]

    @property
    def interval_share(self) -> float:
        """Full width of the 95 % interval of the median, as a share of the median; inf if unknown."""
        interval = median_interval(self.values)
        return (interval[1] - interval[0]) / median(self.values) if interval else float("inf")

    def _why_stop(self, now: float) -> str | None:
        n = len(self.samples)
        if n < self.settings.min_samples:
            return None
        if n >= self._next_look:
            while self._next_look <= n:
                self._next_look = int(self._next_look * GROWTH)
            if self.interval_share <= self.settings.target_ci:
                return "converged"
        if n >= self.settings.max_samples:
            return "max_samples"
        spent = now - self.started
        if spent < self.budget_s:
            return None
        hopeless = spent >= PATIENCE * self.budget_s
        return "budget" if hopeless or self.interval_share <= self.settings.unstable_ci else None

    def summary(self) -> Summary:
        """The statistics of the samples; InvalidMeasurement("unstable") where they say nothing."""
        share = self.interval_share
        centre = median(self.values)
        if share > self.settings.unstable_ci:
            raise InvalidMeasurement(
                "unstable",
                f"the 95 % interval of the median of {len(self.samples)} samples is {share:.0%} of it",
            )
        clocks = [sample.clock for sample in self.samples if sample.clock is not None]
        return Summary(
            latency=centre,
            latency_mad=mad(self.values),
            latency_ci=share * centre / 2,
            samples=len(self.samples),
            sm_clock_mhz=median(clocks) if clocks else None,
            throttled=self.throttled,
            far_outliers=far_outliers(self.values),
        )


@dataclass(frozen=True)
class Summary:
    """What a set of samples says; fields as in Measurement."""

    latency: float
    latency_mad: float
    latency_ci: float
    samples: int
    sm_clock_mhz: float | None
    throttled: bool
    far_outliers: int
