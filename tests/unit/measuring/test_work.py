"""The sampling loop of a GPU against a scripted timer: clocks, throttling, hidden launches."""

from __future__ import annotations

import pytest
from opatlas.measuring.errors import InvalidMeasurement
from opatlas.measuring.settings import Settings
from opatlas.measuring.work import Work, measure_work
from support.timer import FakeTimer, burst


def measured(script, work=None, **settings):
    timer = FakeTimer(script)
    work = work or Work("cuda_graph", [object()], [10], 1e-4, kernels=("k",))
    return timer, measure_work(work, timer, Settings(**settings), 1e-4, lambda: timer.now)


def test_latency_is_per_call_without_the_cost_of_timing():
    _, row = measured([burst()])
    assert row.latency == pytest.approx(0.1)
    assert (row.timing_method, row.stop_reason, row.kernels) == ("cuda_graph", "converged", ("k",))
    assert (row.sm_clock_mhz, row.throttled, row.power_w) == (1980.0, False, None)


def test_bursts_are_taken_in_turn():
    work = Work("cuda_graph", ["a", "b", "c"], [2, 2, 1], 0.0)
    timer, _ = measured([burst()], work)
    assert timer.done[:4] == ["a", "b", "c", "a"]


def test_a_clock_that_falls_during_the_samples_is_repeated_then_flagged():
    """FIELD M5: NVML reads 1980 before and 1200 MHz during the bursts."""
    timer, row = measured([burst(1200.0, ["sw_power_cap"], before=1980.0)])
    assert row.throttled
    assert row.sm_clock_mhz == 1200.0
    assert row.notes["throttle_reasons"] == ["sw_power_cap"]
    assert row.notes["repeated_sets"] == 1
    assert Settings().pause_s in timer.rests


def test_a_clean_trace_is_not_flagged():
    timer, row = measured([burst()] * 50)
    assert not row.throttled
    assert row.notes["repeated_sets"] == 0
    assert not timer.rests


def test_samples_wait_until_the_clock_is_back():
    timer, row = measured([burst(1980.0)] * 3 + [burst(1300.0)] * 4 + [burst(1980.0)])
    assert row.notes["void_samples"] == {"low_clock": 4}
    assert row.sm_clock_mhz == 1980.0
    assert not row.throttled
    assert len(timer.rests) == 3


def test_a_set_that_a_short_throttling_spoilt_is_taken_again():
    script = [burst()] * 5 + [burst(1500.0, ["hw_thermal_slowdown"], before=1980.0)] * 2 + [burst()]
    _, row = measured(script)
    assert not row.throttled
    assert row.notes["repeated_sets"] == 1


def test_launches_that_are_not_hidden_never_count():
    _, row = measured([burst(seconds=0.9, hidden=False)] * 3 + [burst()])
    assert row.latency == pytest.approx(0.1)
    assert row.notes["void_samples"] == {"host_bound": 3}
    with pytest.raises(InvalidMeasurement, match="host_bound"):
        measured([burst(hidden=False)])


def test_power_is_stored_when_asked():
    _, row = measured([burst(power=300.0)], power=True)
    assert row.power_w == 300.0
