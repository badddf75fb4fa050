"""The duty rule under a fake clock."""

from __future__ import annotations

import random

import pytest
from opatlas.measuring.duty import Duty


def test_rest_is_in_proportion_to_work():
    duty = Duty(0.3)
    assert duty.wait(0.0) == 0
    duty.worked(0.003, now=1.0)
    assert duty.wait(1.0) == pytest.approx(0.007)
    assert duty.wait(1.004) == pytest.approx(0.003)
    assert duty.wait(2.0) == 0


def test_bursts_of_any_length_keep_the_share():
    rng = random.Random(1)
    duty, now, busy = Duty(0.3), 0.0, 0.0
    for _ in range(1000):
        now += duty.wait(now)
        burst = rng.uniform(1e-5, 1e-3)
        now += burst
        busy += burst
        duty.worked(burst, now)
    assert busy / now <= 0.301
