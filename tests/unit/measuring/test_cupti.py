"""Arithmetic on recorded kernels, and the last resort's verdict."""

from __future__ import annotations

import pytest
from opatlas.measuring import cupti
from opatlas.measuring.call import Call
from opatlas.measuring.cupti import Activity, busy, measure_traced, span, split
from opatlas.measuring.errors import InvalidMeasurement
from opatlas.measuring.settings import Settings

MARK = Activity(0, 0, "at::cuda::spin_kernel(long)")


def test_span_includes_gaps_and_busy_counts_overlap_once():
    kernels = [Activity(10, 20, "a"), Activity(15, 25, "b"), Activity(40, 50, "c")]
    assert span(kernels) == 40
    assert busy(kernels) == 25


def test_pieces_lie_between_markers():
    a, b = Activity(1, 2, "a"), Activity(3, 4, "b")
    assert split([MARK, a, MARK, MARK, b, a]) == [[a], [b, a]]
    assert split([]) == []


@pytest.fixture
def played(monkeypatch):
    def play(*kernels):
        monkeypatch.setattr(cupti, "record", lambda run: [list(kernels)] * 10)
        return measure_traced(Call(lambda i: None), lambda: None, Settings())

    return play


def test_spans_without_waiting_are_a_measurement(played):
    row = played(Activity(0, 9000, "a"), Activity(9500, 20000, "b"))
    assert row.latency == pytest.approx(0.02)
    assert (row.timing_method, row.kernels) == ("cupti", ("a", "b"))


def test_kernels_that_wait_for_the_host_are_none(played):
    with pytest.raises(InvalidMeasurement, match=r"host_bound.*90%"):
        played(Activity(0, 1000, "a"), Activity(19000, 20000, "b"))
