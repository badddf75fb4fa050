"""The stopping rule as a state machine under a fake clock."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from opatlas.measuring.errors import InvalidMeasurement
from opatlas.measuring.sampling import MOST_VOIDS, Rest, Sample, Sampler, Stop, Take
from opatlas.measuring.settings import Settings


class Bench:
    """Runs a sampler against a scripted device; each sample takes `cost` seconds of a fake clock."""

    def __init__(self, settings: Settings | None = None, budget: float = 1.0, cost: float = 0.001):
        self.now = 100.0
        self.cost = cost
        self.sampler = Sampler(settings or Settings(), budget, self.now)
        self.rests: list[float] = []

    def run(self, device: Callable[[], Sample | str]) -> str:
        while not isinstance(step := self.sampler.next(self.now), Stop):
            if isinstance(step, Rest):
                self.rests.append(step.seconds)
                self.now += step.seconds
                continue
            assert isinstance(step, Take)
            self.now += self.cost
            got = device()
            if isinstance(got, str):
                self.sampler.void(got)
            else:
                self.sampler.took(got)
        return step.reason


def of(values: Iterator[float] | list[float]) -> Callable[[], Sample]:
    stream = iter(values)
    return lambda: Sample(next(stream))


def normal(cv: float, seed: int = 1) -> Iterator[float]:
    rng = random.Random(seed)
    while True:
        yield rng.gauss(1, cv)


def test_steady_samples_converge_at_the_first_look():
    bench = Bench()
    assert bench.run(of(normal(0.001))) == "converged"
    assert len(bench.sampler.samples) == 6
    assert bench.sampler.dropped == 1
    assert bench.sampler.summary().latency == pytest.approx(1, rel=0.002)


def test_looks_are_geometric_not_after_each_sample():
    looked = []

    class Watched(Sampler):
        @property
        def interval_share(self):
            looked.append(len(self.samples))
            return super().interval_share

    bench = Bench()
    bench.sampler = Watched(Settings(), 1.0, bench.now)
    bench.run(of(normal(0.1)))
    assert sorted(set(looked))[:5] == [6, 9, 13, 19, 28]


def test_more_noise_takes_more_samples_until_the_budget():
    few, more = Bench(budget=60), Bench(budget=60)
    assert few.run(of(normal(0.005))) == more.run(of(normal(0.015))) == "converged"
    assert len(few.sampler.samples) < len(more.sampler.samples)
    spent = Bench(budget=0.05)
    assert spent.run(of(normal(0.2))) == "budget"
    assert 45 <= len(spent.sampler.samples) <= 51


def test_at_most_max_samples():
    bench = Bench(Settings(max_samples=40), budget=60)
    assert bench.run(of(normal(0.2))) == "max_samples"
    assert len(bench.sampler.samples) == 40


def test_a_budget_that_one_sample_overruns_still_gives_an_interval():
    bench = Bench(cost=5.0)
    assert bench.run(of(normal(0.02))) == "budget"
    assert len(bench.sampler.samples) == 6
    assert bench.sampler.summary().latency_ci > 0


def test_a_long_call_is_never_dropped():
    script: list[Sample | str] = ["low_clock", "low_clock", *[Sample(1.0)] * 6]
    stream = iter(script)
    bench = Bench()
    bench.sampler = Sampler(Settings(), 1.0, bench.now, long_calls=True)
    assert bench.run(lambda: next(stream)) == "converged"
    assert (bench.sampler.dropped, bench.rests) == (0, [0.005])


def test_outliers_stay_and_are_counted():
    bench = Bench()
    values = [1.0] * 11
    values[4] = 50.0
    bench.run(of(values))
    summary = bench.sampler.summary()
    assert (summary.latency, summary.far_outliers, summary.samples) == (1.0, 1, 9)


def test_a_bimodal_device_does_not_pass_as_converged():
    rng = random.Random(3)
    bench = Bench(budget=0.2)
    assert bench.run(lambda: Sample(rng.choice((1.0, 1.3)))) == "budget"
    assert bench.sampler.summary().latency_ci == pytest.approx(0.15, abs=0.001)


def test_drift_within_a_set_shows_in_the_interval():
    drifting = [1 + 0.005 * i for i in range(500)]
    bench = Bench(budget=0.1)
    assert bench.run(of(drifting)) == "budget"
    assert bench.sampler.summary().latency_ci > 0.01


def test_odd_first_samples_get_more_company_before_they_are_called_unstable():
    values = [1.0, 1.0, 9.0, 1.0, 1.0, 9.0, 1.0] + [1.0] * 50
    bench = Bench(budget=0.005)
    assert bench.run(of(values)) in ("budget", "converged")
    assert len(bench.sampler.samples) > 6
    assert bench.sampler.summary().far_outliers == 2


def test_noise_beyond_all_use_is_no_measurement():
    rng = random.Random(5)
    bench = Bench(budget=0.02)
    assert bench.run(lambda: Sample(rng.lognormvariate(0, 4))) == "budget"
    assert bench.now - 100 == pytest.approx(4 * 0.02, abs=0.002)
    with pytest.raises(InvalidMeasurement, match="unstable"):
        bench.sampler.summary()


def test_low_clock_is_waited_for_with_growing_rests_and_a_dropped_sample():
    script: list[Sample | str] = [Sample(1.0), Sample(1.0), "low_clock", "low_clock", "low_clock"]
    stream = iter(script + [Sample(1.0)] * 50)
    bench = Bench()
    assert bench.run(lambda: next(stream)) == "converged"
    assert bench.rests == [0.005, 0.0075]
    assert bench.sampler.dropped == 2
    assert bench.sampler.voids == {"low_clock": 3}


def test_a_clock_that_never_comes_back_is_accepted_and_flagged():
    bench = Bench(budget=5)

    def device() -> Sample | str:
        if bench.sampler.accepts_low_clock:
            return Sample(1.0, clock=1200.0, throttled=True)
        return "low_clock"

    bench.run(device)
    summary = bench.sampler.summary()
    assert (summary.throttled, summary.sm_clock_mhz) == (True, 1200.0)
    assert bench.sampler.voids["low_clock"] == MOST_VOIDS
    assert sum(bench.rests) < 2


def test_a_host_that_cannot_keep_ahead_ends_the_measurement():
    bench = Bench()
    with pytest.raises(InvalidMeasurement, match="host_bound"):
        bench.run(lambda: "host_bound")
    assert not bench.rests


def test_a_throttled_set_is_repeated_once_after_a_pause():
    states = iter([True] * 7 + [False] * 50)
    bench = Bench()
    assert bench.run(lambda: Sample(1.0, throttled=next(states))) == "converged"
    summary = bench.sampler.summary()
    assert (summary.throttled, bench.sampler.repeats) == (False, 1)
    assert Settings().pause_s in bench.rests


def test_a_long_call_that_throttles_by_itself_is_flagged_at_once():
    bench = Bench(budget=5)
    bench.sampler = Sampler(Settings(), 5.0, bench.now, long_calls=True)
    assert bench.run(lambda: Sample(1.0, throttled=True, by_itself=True)) == "converged"
    assert bench.sampler.summary().throttled
    assert bench.sampler.repeats == 0
    assert not bench.rests


def test_reasons_of_void_samples_are_counted_apart():
    """One slow moment of the host among low clocks is not a host that cannot keep ahead."""
    script = ["low_clock"] * (MOST_VOIDS - 1) + ["host_bound"]
    stream = iter(script + [Sample(1.0)] * 50)
    assert Bench(budget=60).run(lambda: next(stream)) == "converged"


def test_a_set_that_comes_back_throttled_is_flagged():
    bench = Bench(budget=5)
    assert bench.run(lambda: Sample(1.0, throttled=True)) == "converged"
    assert bench.sampler.summary().throttled
    assert bench.sampler.repeats == 1
