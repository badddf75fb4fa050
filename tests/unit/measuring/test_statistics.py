"""Statistics against published ranks, known distributions and hand-made sets."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opatlas.measuring.statistics import far_outliers, mad, median, median_interval, median_ranks


@pytest.mark.parametrize(
    ("n", "ranks"),
    [
        (6, (1, 6)),
        (10, (2, 9)),
        (15, (4, 12)),
        (20, (6, 15)),
        (30, (10, 21)),
        (50, (18, 33)),
        (100, (40, 61)),
        (300, (133, 168)),
    ],
)
def test_ranks_of_the_95_percent_interval(n, ranks):
    assert median_ranks(n) == ranks


def test_fewer_than_six_samples_have_no_interval():
    assert [median_ranks(n) for n in range(6)] == [None] * 6
    assert median_interval([1.0] * 5) is None


def test_99_percent_needs_eight():
    assert median_ranks(7, tail=0.005) is None
    assert median_ranks(8, tail=0.005) == (1, 8)


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.gauss(10, 1),
        lambda rng: rng.lognormvariate(0, 1),
        lambda rng: rng.choice((1.0, 2.0)) + rng.random() * 0.1,
    ],
    ids=["normal", "skewed", "bimodal"],
)
@pytest.mark.parametrize("n", [6, 10, 33])
def test_the_interval_covers_the_median_of_any_distribution(draw, n):
    rng = random.Random(1)
    truth = median([draw(rng) for _ in range(100_001)])
    hits = 0
    for _ in range(2000):
        low, high = median_interval([draw(rng) for _ in range(n)])
        hits += low <= truth <= high
    assert hits / 2000 >= 0.94


def test_one_outlier_moves_neither_median_nor_mad():
    assert median([1, 1, 1, 9]) == 1
    assert mad([1, 1, 1, 9]) == 0
    assert far_outliers([1, 1, 1, 9] * 1 + [1] * 4) == 1
    assert far_outliers([1, 1.01, 0.99, 1.02, 0.98, 1]) == 0


@given(st.lists(st.floats(0.001, 1000), min_size=1, max_size=60))
def test_median_lies_within_and_ignores_order(values):
    assert min(values) <= median(values) <= max(values)
    assert median(values) == median(values[::-1])
    assert 0 <= mad(values) <= max(values) - min(values)
    interval = median_interval(values)
    if interval:
        assert interval[0] <= median(values) <= interval[1]
