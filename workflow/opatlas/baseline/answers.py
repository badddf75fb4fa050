"""Same, different or cannot say: what a ratio of two latencies proves, given how far each is uncertain.

All is done on logarithms of ratios, so that twice and half are as far from 1. A ratio is known to lie in
an interval; the answer is `same` where the interval lies within the tolerance, `different` where it lies
outside, and `cannot say` where it reaches over the border.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from opatlas.measuring.statistics import median_ranks
from opatlas.ops.spec import Array

TOLERANCE = 0.03
# A group is not `same` while more than a twentieth of its rows are further apart than this.
TAIL = 0.10
SAME, DIFFERENT, UNKNOWN = "same", "different", "cannot say"
ANSWERS = (SAME, DIFFERENT, UNKNOWN)
# Ranks of the median's interval are exact up to here; beyond, the binomial distribution is as good as normal.
EXACT = 500
QUANTILES = (0, 5, 25, 50, 75, 95, 100)


@dataclass(frozen=True)
class Ratios:
    """Logarithms of new over old latency, and half the width of the interval of each; NaN where a side
    states no spread."""

    log: Array
    half: Array

    def take(self, index: Array) -> Ratios:
        return Ratios(self.log[index], self.half[index])


def rows(ratios: Ratios) -> Array:
    """An index into ANSWERS for each row."""
    limit, distance = np.log1p(TOLERANCE), np.abs(ratios.log)
    with np.errstate(invalid="ignore"):
        same = distance + ratios.half <= limit
        different = distance - ratios.half > limit
    answers: Array = np.select([same, different], [0, 1], 2)
    return answers


def group(ratios: Ratios, answers: Array) -> dict[str, Any]:
    """Quantiles of a group's ratios, the interval of their median, and the answer for the group.

    The median's own interval is widened by the usual spread of a row, since what all rows of a run share
    (a node, its clocks) does not average out. Where a side states no spread, half the ratios' quartile
    distance stands for it.
    """
    log = np.sort(ratios.log)
    quantiles = np.percentile(log, QUANTILES)
    stated = ratios.half[np.isfinite(ratios.half)]
    scatter = (quantiles[4] - quantiles[2]) / 2
    half = float(np.median(stated)) if len(stated) == len(log) else float(scatter)
    low, high = _median_interval(log)
    counts = np.bincount(answers, minlength=len(ANSWERS))
    found: dict[str, Any] = {
        "rows": len(log),
        **{f"p{q}": _ratio(value) for q, value in zip(QUANTILES, quantiles, strict=True)},
        "low": _ratio(low - half),
        "high": _ratio(high + half),
        "spread": "stated" if len(stated) == len(log) else "scatter",
        **{f"rows {name}": int(count) for name, count in zip(ANSWERS, counts, strict=True)},
    }
    found["answer"] = _answer(low - half, high + half, quantiles, counts[1] / len(log))
    return found


def _answer(low: float, high: float, quantiles: Array, different: float) -> str:
    limit, tail = np.log1p(TOLERANCE), np.log1p(TAIL)
    if low > limit or high < -limit or different > 0.05:
        return DIFFERENT
    if -limit <= low and high <= limit and -tail <= quantiles[1] and quantiles[5] <= tail:
        return SAME
    return UNKNOWN


def _median_interval(log: Array) -> tuple[float, float]:
    """The 95 % interval of the median of sorted values; all of them where they are too few for one."""
    count = len(log)
    if count <= EXACT:
        low, high = median_ranks(count) or (1, count)
    else:
        reach = 0.98 * math.sqrt(count)
        low, high = int(count / 2 - reach), math.ceil(count / 2 + reach) + 1
    return float(log[low - 1]), float(log[high - 1])


def _ratio(log: float) -> float:
    return round(float(np.exp(log)), 6)
