"""What of a comparison needs a look, as advisory findings."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opatlas.baseline.answers import DIFFERENT, TOLERANCE
from opatlas.baseline.compare import Comparison
from opatlas.baseline.ratios import Record
from opatlas.checks.finding import ADVISORY, Finding, some

NAME = "baseline"
# A run is suspect when every op, of at least so many, moved the same way by nearly the same factor.
LEAST_OPS = 2


def findings(comparison: Comparison) -> Iterator[Finding]:
    """Surroundings first: what differs there may explain the ratios."""
    if comparison.environment:
        lines = comparison.environment
        message = f"the surroundings differ: {lines[0]}"
        yield _finding("", message, "read the ratios with that in mind", len(lines), some(lines[1:]))
    if (factor := common_factor(comparison.ops)) is not None:
        message = f"every op is {_words(factor)} alike: the run is suspect, rather than the framework"
        advice = "compare control cases, clocks and power limits of both runs before believing a change"
        yield _finding("", message, advice, len(comparison.ops))
    for entry in comparison.ops:
        if entry["answer"] == DIFFERENT:
            yield _changed(comparison, entry)
    for entry in comparison.coverage:
        if entry["lost"]:
            keys = [", ".join(f"{k}={v}" for k, v in key.items()) for key in entry["examples"]["lost"]]
            message = f"{_label(entry)}: the baseline has rows that this dataset lacks"
            advice = "see plan diff, skips and failures.parquet for why"
            yield _finding(entry["table"], message, advice, entry["lost"], some(keys))
    for entry in comparison.failures["new"]:
        message = f"{entry['op']}: {entry['class']} in the group {entry['group']} is new"
        advice = "see failures.parquet"
        yield _finding(entry["table"], message, advice, entry["cases"], selector=f"group={entry['group']}")


def common_factor(ops: list[Record]) -> float | None:
    """The ratio by which all ops moved, beyond the tolerance and nearly alike; None where they did not."""
    medians = np.log([entry["p50"] for entry in ops])
    if len({entry["op"] for entry in ops}) < LEAST_OPS or np.abs(medians).min() <= np.log1p(TOLERANCE):
        return None
    middle = float(np.median(medians))
    return float(np.exp(middle)) if np.abs(medians - middle).max() <= abs(middle) / 2 else None


def _changed(comparison: Comparison, entry: Record) -> Finding:
    sizes = [
        f"{group['size']}: {group['p50']:.3f} over {group['rows']} rows ({group['answer']})"
        for group in comparison.groups
        if (group["table"], group["op"], group["dtype"]) == (entry["table"], entry["op"], entry["dtype"])
    ]
    message = (
        f"{_label(entry)}: the median is {_words(entry['p50'])}; "
        f"{entry['rows different']} of {entry['rows']} rows are surely different"
    )
    return _finding(entry["table"], message, "see the largest changes", entry["rows"], some(sizes))


def _label(entry: Record) -> str:
    return f"{entry['op']} {entry['dtype']}".strip()


def _words(ratio: float) -> str:
    return f"{ratio:.3f} times the baseline's"


def _finding(
    table: str, message: str, advice: str, count: int, examples: tuple[str, ...] = (), selector: str = ""
) -> Finding:
    return Finding(NAME, ADVISORY, table, message, advice, selector, count, examples)
