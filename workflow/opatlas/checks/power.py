"""Power that was read is possible: above zero (values has that), and within the limit of the card."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opatlas.checks.evidence import Evidence
from opatlas.checks.finding import ADVISORY, BLOCKING, Finding, some

NAME = "power"


def check(evidence: Evidence) -> Iterator[Finding]:
    limits = {name: _limit(attempt) for name, attempt in evidence.record["attempts"].items()}
    none = sorted(name for name, limit in limits.items() if limit is not None and not limit > 0)
    if none:
        message = "the power limit that was read is not above zero"
        advice = "the sampler failed and must say so by null: measure the attempts' shards again"
        yield Finding(NAME, BLOCKING, "", message, advice, "attempt", len(none), some(none))
    for own in evidence.ops:
        if own.rows["power_w"].null_count == own.rows.num_rows:
            continue
        codes, attempts = own.codes("attempt")
        limit = np.array([limits.get(name) or np.inf for name in attempts])[codes]
        over = own.column("power_w") > limit
        if over.any():
            cases = own.ids(over)
            message = "rows drew more power than the card's limit"
            advice = "the readings are wrong, or the limit was changed meanwhile: look at the node"
            yield Finding(NAME, ADVISORY, own.table, message, advice, "power_w", len(cases), some(cases))


def _limit(attempt: Any) -> float | None:
    found: float | None = (attempt.get("facts") or {}).get("power_limit_w")
    return found
