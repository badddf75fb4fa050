"""Few enough cases failed, in each table and in each of its (model, dtype) groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from opatlas.checks.evidence import Evidence
from opatlas.checks.finding import ADVISORY, BLOCKING, Finding, some
from opatlas.tables.merge import by_table

NAME = "failure_share"


def check(evidence: Evidence) -> Iterator[Finding]:
    settings = evidence.planned.config.settings
    limits = settings.failure_share
    failed: dict[str, Counter[str]] = {}
    for failure in evidence.failures.select(["table", "group"]).to_pylist():
        failed.setdefault(failure["table"], Counter())[failure["group"]] += 1
    for table, ops in by_table(evidence.planned).items():
        mine = failed.get(table, Counter())
        accepted = {entry.group: entry.reason for entry in settings.accepted if entry.table == table}
        yield from _accepted(table, accepted, mine)
        if not mine:
            continue
        ran = Counter(op.group(case) for op in ops for case in op.cases)
        counted = sum(count for group, count in ran.items() if group not in accepted)
        lost = Counter({group: count for group, count in mine.items() if group not in accepted})
        share = lost.total() / counted if counted else 0.0
        if share >= limits.warn:
            severity = BLOCKING if share >= limits.stop else ADVISORY
            worst = (f"{group}: {count} of {ran[group]}" for group, count in lost.most_common())
            message = f"{share:.0%} of the cases failed"
            yield _finding(severity, table, message, "", lost.total(), some(worst))
        for group, count in sorted(lost.items()):
            if count >= ran[group] >= limits.group:
                yield _finding(BLOCKING, table, f"all cases of the group {group} failed", group, count, ())


def _finding(
    severity: str, table: str, message: str, group: str, count: int, examples: tuple[str, ...]
) -> Finding:
    advice = "see failures.parquet; a known failure is accepted under checks.accepted in config/config.yaml"
    selector = f"group={group}" if group else ""
    return Finding(NAME, severity, table, message, advice, selector, count, examples)


def _accepted(table: str, accepted: dict[str, str], failed: Counter[str]) -> Iterator[Finding]:
    for group, reason in accepted.items():
        if failed[group]:
            message = f"the group {group} fails and is accepted: {reason}"
            advice = "nothing, while the reason holds"
        else:
            message = f"the group {group} is accepted as failing and has no failure"
            advice = "take it out of checks.accepted in config/config.yaml"
        yield Finding(NAME, ADVISORY, table, message, advice, f"group={group}", failed[group])
