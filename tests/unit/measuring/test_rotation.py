"""Cold copies: no rotation that is captured may be warmer than two caches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opatlas.measuring.rotation import MARGIN, MOST_CALLS, bytes_between_uses, copies_for_cold, cut

CACHE = 60 << 20
SAMPLE_S, BURST_S = 0.0002, 0.0009


def test_copies_make_the_others_twice_the_cache():
    assert copies_for_cold(0, CACHE) == 1
    assert copies_for_cold(200 << 20, CACHE) == 2
    assert copies_for_cold(1 << 20, CACHE) == 121


@pytest.mark.parametrize(
    ("order", "others"),
    [([0, 1, 2], 2), ([0, 1, 2, 0, 1, 2], 2), ([0, 0], 0), ([0, 1, 0, 2], 1), ([0], 0)],
)
def test_bytes_between_uses_of_an_order(order, others):
    assert bytes_between_uses(order, 10) == 10 * others


def test_ten_calls_of_a_hundred_copies_are_not_taken_for_cold():
    """A graph that uses the first ten of many small copies keeps ten copies hot."""
    assert bytes_between_uses(range(10), 1 << 20) < MARGIN * CACHE
    rotation = cut(MOST_CALLS, 1 << 20, CACHE, 5e-6, SAMPLE_S, BURST_S)
    assert rotation.evict


def test_a_burst_stays_short_by_being_cut():
    rotation = cut(13, 10 << 20, CACHE, 120e-6, SAMPLE_S, BURST_S)
    assert [len(order) for order in rotation.orders] == [7, 6]
    assert not rotation.evict
    assert sum(rotation.orders, ()) == tuple(range(13))


def test_long_calls_stand_alone():
    rotation = cut(3, 100 << 20, CACHE, 0.02, SAMPLE_S, BURST_S)
    assert rotation.orders == ((0,), (1,), (2,))


def test_an_estimate_that_is_a_little_off_changes_nothing():
    assert cut(1, 0, CACHE, 9e-6, SAMPLE_S, BURST_S) == cut(1, 0, CACHE, 16e-6, SAMPLE_S, BURST_S)


def test_nothing_to_be_cold():
    rotation = cut(1, 0, CACHE, 10e-6, SAMPLE_S, BURST_S)
    assert rotation.orders == ((0,) * 16,)
    assert not rotation.evict


@given(
    st.integers(1, 1 << 34),
    st.integers(1 << 20, 1 << 28),
    st.floats(1e-6, 1.0),
)
def test_whatever_the_sizes_copies_are_cold_and_bursts_short(size, cache, call_s):
    copies = min(MOST_CALLS, copies_for_cold(size, cache))
    rotation = cut(copies, size, cache, call_s, SAMPLE_S, BURST_S)
    assert rotation.bytes_between_uses >= MARGIN * cache
    for order in rotation.orders:
        assert 1 <= len(order) <= MOST_CALLS
        assert len(order) == 1 or len(order) * call_s <= BURST_S
        assert max(order) < copies
        if rotation.evict:
            assert len(set(order)) == len(order)
