"""Cold copies: no rotation that is captured may be warmer than two caches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opatlas.measuring.rotation import (
    MARGIN,
    MOST_CALLS,
    bytes_between_uses,
    copies_for_cold,
    cut,
    sets_for_warm,
)

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
    rotation = cut(MOST_CALLS, 1 << 20, 1, CACHE, 5e-6, SAMPLE_S, BURST_S)
    assert rotation.evict


def test_a_burst_stays_short_by_being_cut():
    rotation = cut(13, 10 << 20, 1, CACHE, 120e-6, SAMPLE_S, BURST_S)
    assert [len(order) for order in rotation.orders] == [7, 6]
    assert not rotation.evict
    assert sum(rotation.orders, ()) == tuple(range(13))


def test_long_calls_stand_alone():
    rotation = cut(3, 100 << 20, 1, CACHE, 0.02, SAMPLE_S, BURST_S)
    assert rotation.orders == ((0,), (1,), (2,))


def test_an_estimate_that_is_a_little_off_changes_nothing():
    assert cut(1, 0, 1, CACHE, 9e-6, SAMPLE_S, BURST_S) == cut(1, 0, 1, CACHE, 16e-6, SAMPLE_S, BURST_S)


def test_nothing_to_be_cold():
    rotation = cut(1, 0, 1, CACHE, 10e-6, SAMPLE_S, BURST_S)
    assert rotation.orders == (tuple(range(16)),)
    assert not rotation.evict


def test_sets_stay_warm():
    assert sets_for_warm(1 << 10, CACHE) == 8
    assert sets_for_warm(10 << 20, CACHE) == 3
    assert sets_for_warm(1 << 30, CACHE) == 1
    assert sets_for_warm(0, CACHE) == 8


def test_after_an_eviction_each_set_is_made_warm_by_copies_that_are_not_timed():
    rotation = cut(MOST_CALLS, 1 << 10, 8, CACHE, 3e-6, SAMPLE_S, BURST_S)
    assert {call % 8 for call in rotation.lead} == set(range(8))
    used = [call % MOST_CALLS for call in (*rotation.lead, *rotation.orders[0])]
    assert len(set(used)) == len(used)


@given(
    st.integers(1, 1 << 34),
    st.integers(1 << 20, 1 << 28),
    st.integers(1, 8),
    st.floats(1e-6, 1.0),
)
def test_whatever_the_sizes_copies_are_cold_and_bursts_short(size, cache, sets, call_s):
    copies = min(MOST_CALLS, copies_for_cold(size, cache))
    rotation = cut(copies, size, sets, cache, call_s, SAMPLE_S, BURST_S)
    assert rotation.bytes_between_uses >= MARGIN * cache
    for order in rotation.orders:
        assert 1 <= len(order) <= MOST_CALLS
        assert len(order) == 1 or len(order) * call_s <= BURST_S
        if rotation.evict:
            used = {call % copies for call in (*rotation.lead, *order)}
            assert len(used) == len(rotation.lead) + len(order)
