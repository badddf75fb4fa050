"""No shard's times are off by orders of magnitude: a wrong unit shows beside the other shards."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from opatlas.checks.evidence import Evidence
from opatlas.checks.finding import BLOCKING, Finding

# A call's time where its work is next to nothing.
IDLE_MS = 0.005


def check(evidence: Evidence) -> Iterator[Finding]:
    limits = evidence.planned.config.settings.checks.units
    for own in evidence.ops:
        if own.latency_ms is None:
            continue
        relative = own.latency_ms / (IDLE_MS + own.least_ms)
        usable = np.isfinite(relative) & (relative > 0)
        codes, names = own.codes("shard")
        shards = pd.Series(relative[usable]).groupby(codes[usable]).agg(["median", "size"])
        if len(shards) < limits.shards:
            continue
        usual = float(shards["median"].median())
        for code, median, count in shards.itertuples():
            factor = max(median / usual, usual / median)
            if factor >= limits.factor:
                side = "slower" if median > usual else "faster"
                message = f"times are {factor:.0f} times {side} for their work than those of other shards"
                advice = "a unit is mistaken, or the node is sick: measure the shard again"
                yield Finding("units", BLOCKING, own.table, message, advice, f"shard={names[code]}", count)
