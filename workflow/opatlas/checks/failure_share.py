"""Few enough cases failed, in each table and in each of its (model, dtype) groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from opatlas.checks.evidence import Evidence
from opatlas.checks.finding import ADVISORY, BLOCKING, Finding, some
from opatlas.planning.plan import OpPlan
from opatlas.tables.merge import by_table

NAME = "failure_share"


def check(evidence: Evidence) -> Iterator[Finding]:
    checks = evidence.planned.config.settings.checks
    limits = checks.failure_share
    failed: dict[str, Counter[str]] = {}
    for entry in evidence.failures.group_by(["table", "group"]).aggregate([([], "count_all")]).to_pylist():
        failed.setdefault(entry["table"], Counter())[entry["group"]] = entry["count_all"]
    for table, ops in by_table(evidence.planned).items():
        mine = failed.get(table, Counter())
        accepted = {entry.group: entry.reason for entry in checks.accepted if entry.table == table}
        yield from _accepted(table, accepted, mine)
        if not mine:
            continue
        ran = sum(map(_ran, ops), Counter[str]())
        counted = sum(count for group, count in ran.items() if group not in accepted)
        lost = Counter({group: count for group, count in mine.items() if group not in accepted})
        share = lost.total() / counted if counted else 0.0
        if share >= limits.warn:
            severity = BLOCKING if share >= limits.stop else ADVISORY
            ordered = sorted(lost.items(), key=lambda item: (-item[1], item[0]))
            worst = (f"{group}: {count} of {ran[group]}" for group, count in ordered)
            message = f"{share:.0%} of the cases failed"
            yield _finding(severity, table, message, "", lost.total(), some(worst))
        for group, count in sorted(lost.items()):
            if count >= ran[group] >= limits.group:
                yield _finding(BLOCKING, table, f"all cases of the group {group} failed", group, count, ())


def _ran(op: OpPlan) -> Counter[str]:
    """Group -> its planned cases, as `OpPlan.group` names it."""
    at = op.op.fields.index(op.op.dtype)
    dtypes = op.rows.values[at]
    pairs, counts = np.unique(op.owner_index * len(dtypes) + op.rows.codes[at], return_counts=True)
    ran: Counter[str] = Counter()
    for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
        owners, dtype = divmod(pair, len(dtypes))
        ran[f"{op.owner_sets[owners][0]} {dtypes[dtype]}"] += count
    return ran


def _finding(
    severity: str, table: str, message: str, group: str, count: int, examples: tuple[str, ...]
) -> Finding:
    advice = "see failures.parquet; a known failure is accepted under checks.accepted in config/config.yaml"
    selector = f"group={group}" if group else ""
    return Finding(NAME, severity, table, message, advice, selector, count, examples)


def _accepted(table: str, accepted: Mapping[str, str], failed: Mapping[str, int]) -> Iterator[Finding]:
    for group, reason in accepted.items():
        if count := failed.get(group, 0):
            message = f"the group {group} fails and is accepted: {reason}"
            advice = "nothing, while the reason holds"
        else:
            message = f"the group {group} is accepted as failing and has no failure"
            advice = "take it out of checks.accepted in config/config.yaml"
        yield Finding(NAME, ADVISORY, table, message, advice, f"group={group}", count)
