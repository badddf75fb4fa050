"""The burst timer on a simulated device: a queue, a clock that may drop, a host that may be slow."""

from __future__ import annotations

import pytest
from opatlas.measuring import bursts
from opatlas.measuring.bursts import LEAST_BLOCK_CYCLES, BurstTimer
from opatlas.measuring.nvml import Reading
from opatlas.measuring.settings import Settings

EVENT_S = 1.3e-6


class Device:
    """Host and device times in s; each launch costs the host 5 us; the SM clock is in MHz."""

    def __init__(self):
        self.host = self.device = 0.0
        self.launch_s = 5e-6
        self.clock = 1980.0
        self.busy = 0.0

    def launch(self, seconds):
        self.host += self.launch_s
        self.device = max(self.device, self.host) + seconds

    def sleep_kernel(self, cycles):
        self.launch(cycles / self.clock * 1e-6)

    def work(self, seconds):
        self.busy += seconds
        self.launch(seconds)

    def perf_counter(self):
        self.host += 1e-7
        return self.host

    def sleep(self, seconds):
        self.host += seconds

    def synchronize(self):
        self.host = max(self.host, self.device)

    def event(self, enable_timing):
        device = self

        class Event:
            def record(self):
                device.launch(EVENT_S)
                self.at = device.device

            def query(self):
                return self.at <= device.host

            def synchronize(self):
                device.host = max(device.host, self.at)

            def elapsed_time(self, end):
                return (end.at - self.at) * 1e3

        return Event()

    def read(self, power=False):
        return Reading(int(self.clock), (), 40, None)


@pytest.fixture
def device(monkeypatch):
    simulated = Device()
    monkeypatch.setattr(bursts.torch.cuda, "_sleep", simulated.sleep_kernel, raising=False)
    monkeypatch.setattr(bursts.torch.cuda, "Event", simulated.event)
    monkeypatch.setattr(bursts.torch.cuda, "synchronize", simulated.synchronize)
    monkeypatch.setattr(bursts.time, "perf_counter", simulated.perf_counter)
    monkeypatch.setattr(bursts.time, "sleep", simulated.sleep)
    return simulated


@pytest.fixture
def timer(device):
    return BurstTimer(Settings(), device)


def test_the_clock_is_found_and_followed(device, timer):
    assert timer.nominal_clock == pytest.approx(1980, rel=0.001)
    assert timer.time(lambda: None, 0.0).clock == pytest.approx(1980, rel=0.001)
    device.clock = 1260.0
    assert timer.time(lambda: None, 0.0).clock_before == pytest.approx(1260, rel=0.001)


def test_launches_are_no_part_of_the_time(device, timer):
    burst = timer.time(lambda: [device.work(2e-6) for _ in range(10)], 2e-5)
    assert burst.hidden
    assert burst.seconds == pytest.approx(2e-5 + EVENT_S, rel=0.01)


def test_a_lead_is_run_and_not_timed(device, timer):
    burst = timer.time(lambda: device.work(1e-5), 1e-5, lambda: device.work(1e-4))
    assert burst.seconds == pytest.approx(1e-5 + EVENT_S, rel=0.01)


def test_a_host_that_is_late_is_noticed_and_then_given_more_time(device, timer):
    def slow():
        for _ in range(60):
            device.work(2e-6)

    seen = [timer.time(slow, 1e-4).hidden for _ in range(6)]
    assert seen == [False, False, True, True, True, True]
    for _ in range(60):
        timer.time(lambda: None, 0.0)
    assert timer._block == LEAST_BLOCK_CYCLES


def test_a_call_that_synchronises_is_never_hidden(device, timer):
    def waits():
        device.work(1e-5)
        device.synchronize()

    assert not any(timer.time(waits, 1e-5).hidden for _ in range(20))
    assert device.host < 2


def test_the_duty_is_kept_whatever_the_length(device, timer):
    start, device.busy = device.host, 0.0
    for seconds in (1e-5, 5e-4, 5e-3, 1e-4) * 20:
        timer.time(lambda s=seconds: device.work(s), seconds)
    timer.time(lambda: None, 0.0)
    assert device.busy / (device.host - start) <= 0.301


def test_untimed_work_is_part_of_the_duty(device, timer):
    start, device.busy = device.host, 0.0
    for _ in range(20):
        timer.run(lambda: device.work(1e-3), 1e-3)
    timer.time(lambda: None, 0.0)
    assert device.busy / (device.host - start) <= 0.31


def test_long_work_is_not_begun_at_a_low_clock(device, timer):
    device.clock, device.busy = 1260.0, 0.0
    least = 0.985 * timer.nominal_clock
    burst = timer.time(lambda: device.work(0.005), 0.005, None, least)
    assert (burst.seconds, device.busy) == (0.0, 0.0)
    assert burst.clock_before < least
    timer.time(lambda: device.work(1e-5), 1e-5, None, least)
    assert device.busy == 1e-5


def test_the_clock_in_the_middle_of_long_work_is_seen(device, timer):
    def heats():
        device.work(0.02)
        device.clock = 1500.0

    burst = timer.time(heats, 0.02)
    assert burst.clock_before == pytest.approx(1980, rel=0.001)
    assert burst.clock == 1500.0


def test_where_the_host_was_late_for_the_block_nvml_tells_the_clock(device, timer):
    device.launch_s = 2e-4
    burst = timer.time(lambda: None, 0.0)
    assert burst.clock_before == 1980
