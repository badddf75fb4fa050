"""The few statistics a row needs: all by rank, so that no distribution is assumed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import comb


def median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def mad(values: Sequence[float]) -> float:
    """Median absolute deviation from the median, unscaled."""
    centre = median(values)
    return median([abs(value - centre) for value in values])


@cache
def median_ranks(n: int, tail: float = 0.025) -> tuple[int, int] | None:
    """Ranks (from 1) of the order statistics that enclose the median with 1 - 2 * tail confidence.

    The number of samples below the true median is binomial(n, 1/2) whatever the distribution, so the
    interval between the l-th smallest and the l-th largest misses it with probability
    2 P(binomial < l). None where even the whole range is not enough (n < 6 at 95 %).
    """
    limit = tail * 2**n
    below, low = 0, 0
    while True:
        below += comb(n, low)
        if below > limit:
            break
        low += 1
    return (low, n + 1 - low) if low else None


def median_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """The distribution-free 95 % confidence interval of the median; None for fewer than 6 values."""
    ranks = median_ranks(len(values))
    if ranks is None:
        return None
    ordered = sorted(values)
    return ordered[ranks[0] - 1], ordered[ranks[1] - 1]


def far_outliers(values: Sequence[float]) -> int:
    """How many values lie more than three interquartile ranges outside the quartiles."""
    ordered = sorted(values)
    n = len(ordered)
    low, high = ordered[n // 4], ordered[(3 * n) // 4 if n > 1 else 0]
    reach = 3 * (high - low)
    return sum(value < low - reach or value > high + reach for value in ordered)
