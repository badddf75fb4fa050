"""No shard's times are off by orders of magnitude: a wrong unit shows beside the other shards."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opatlas.checks.evidence import Evidence
from opatlas.checks.finding import BLOCKING, Finding
from opatlas.checks.roofline import shortest_ms

# A call's time where its work is next to nothing, in ms; what shards differ by for good reasons is far
# less than FACTOR, and a unit mistaken is a factor of 1000.
IDLE_MS = 0.005
FACTOR = 100.0
LEAST_SHARDS = 3


def check(evidence: Evidence) -> Iterator[Finding]:
    peaks = evidence.planned.dataset.platform.peaks
    for own in evidence.ops:
        if "latency" not in own.rows.column_names:
            continue
        relative = own.column("latency") / (IDLE_MS + shortest_ms(own, peaks))
        usable = np.isfinite(relative) & (relative > 0)
        relative, shards = relative[usable], own.column("shard")[usable]
        medians = {shard: float(np.median(relative[shards == shard])) for shard in sorted(set(shards))}
        if len(medians) < LEAST_SHARDS:
            continue
        usual = float(np.median(list(medians.values())))
        for shard, median in medians.items():
            factor = max(median / usual, usual / median)
            if factor >= FACTOR:
                side = "slower" if median > usual else "faster"
                message = f"times are {factor:.0f} times {side} for their work than those of other shards"
                advice = "a unit is mistaken, or the node is sick: measure the shard again"
                count = int((shards == shard).sum())
                yield Finding("units", BLOCKING, own.table, message, advice, f"shard={shard}", count)
