"""The duty rule under a fake clock."""

from __future__ import annotations

import random

import pytest
from opatlas.measuring.duty import Duty


def test_rest_is_in_proportion_to_work():
    duty = Duty(0.3, 0.0)
    assert duty.wait(0.0) == 0
    duty.worked(0.003, now=1.0)
    assert duty.wait(1.0) == pytest.approx(0.007)
    assert duty.wait(1.004) == pytest.approx(0.003)
    assert duty.wait(2.0) == 0


def test_bursts_of_any_length_keep_the_share():
    rng = random.Random(1)
    duty, now, busy = Duty(0.3, 0.0), 0.0, 0.0
    for _ in range(1000):
        now += duty.wait(now)
        burst = rng.uniform(1e-5, 1e-3)
        now += burst
        busy += burst
        duty.worked(burst, now)
    assert busy / now <= 0.301


def test_rest_before_the_work_counts_up_to_the_credit():
    duty = Duty(0.3, 0.014)
    duty.worked(0.003, now=1.0)
    # Long idle: of all that rest 14 ms count, which pay for 6 ms of work.
    duty.worked(0.003, now=2.0)
    assert duty.wait(2.0) == 0
    duty.worked(0.003, now=2.003)
    assert duty.wait(2.003) == pytest.approx(0.0)
    duty.worked(0.003, now=2.006)
    assert duty.wait(2.006) == pytest.approx(0.007)


def test_credit_keeps_the_share_over_a_long_time():
    rng = random.Random(2)
    duty, now, busy = Duty(0.3, 0.03), 0.0, 0.0
    for case in range(300):
        now += 0.035 * (case % 3)
        idle_from, busy_before = now, busy
        for _ in range(rng.randrange(1, 20)):
            now += duty.wait(now)
            burst = rng.uniform(1e-5, 3e-3)
            now += burst
            busy += burst
            duty.worked(burst, now)
        # Work that the credit allows at once, and the share of the time from then on.
        assert busy - busy_before <= 0.03 * 0.3 / 0.7 + 0.3 * (now - idle_from) + 3e-3
