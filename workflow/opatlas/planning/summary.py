"""A plan for people: what a dry run prints."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from opatlas.planning.dataset import PlannedDataset
from opatlas.planning.plan import OpPlan
from opatlas.shards.reasons import why
from opatlas.shards.state import ShardState

WIDTH = 100


def text(root: Path, planned: PlannedDataset, states: Sequence[ShardState]) -> str:
    """Cases per op and precision, what was left out and why, shards, which are stale and why."""
    plan = planned.plan
    rows = [state for state in states if state.shard not in planned.repeats]
    lines = ["", f"Plan of {planned.dataset.target}", ""]
    lines += _table(
        ["op", "precision", "cases", "rows missing", "shards", "to measure", "device time"],
        [row for op in plan.ops for row in _op_rows(op, [s for s in rows if s.shard.op == op.op.name])],
    )
    lines += _others("planned, no runner", [op.op.name for op in plan.ops if not op.runner])
    lines += _others("pinned at another version", plan.pinned_elsewhere)
    lines += _others(
        "unverified on this hardware", [op.op.name for op in plan.ops if op.runner and op.unverified]
    )
    lines += _left_out(plan.ops)
    lines += ["", *(f"warning: {warning}" for warning in plan.warnings)] if plan.warnings else []
    lines += _stale(root, states)
    seconds = sum(state.missing_s for state in states)
    missing = sum(len(state.missing) for state in states)
    jobs = sum(bool(state.missing) for state in states)
    lines += [
        "",
        f"{plan.cases} cases ({plan.case_plan_hash}), {len(states)} shards; "
        f"to measure: {missing} cases in {jobs} jobs, about {duration(seconds)} of device time",
    ]
    if sample := sum(len(shard.ids) for shard in planned.repeats):
        lines.append(f"{sample} of the cases are measured once more at the end, as the audit sample")
    if subset := planned.dataset.subset:
        cut = sum(op.cut for op in plan.ops)
        drawn = subset.limit or subset.limit_per_op or subset.smoke
        seed = f", drawn with seed {planned.config.settings.seed}" if drawn else ""
        lines.append(f"subset {subset.name}: {cut} cases of the whole dataset are not in it{seed}")
    return "\n".join([*lines, ""])


def _op_rows(op: OpPlan, states: Sequence[ShardState]) -> Iterable[list[str]]:
    precisions = _precisions(op)
    cases = Counter(precisions)
    missing = {key.case for state in states for key in state.missing}
    lacking = Counter(
        precision
        for precision, case_id in zip(precisions, op.ids if missing else (), strict=False)
        if case_id in missing
    )
    shards, to_measure, time = "", "", ""
    if op.runner:
        shards, to_measure = str(len(states)), str(sum(bool(state.missing) for state in states))
        time = duration(sum(state.missing_s for state in states))
    for number, precision in enumerate(sorted(cases)):
        head = [op.op.name if number == 0 else "", _words(precision), str(cases[precision])]
        tail = [shards, to_measure, time] if number == 0 else ["", "", ""]
        yield [*head, str(lacking[precision]) if op.runner else "", *tail]


def _precisions(op: OpPlan) -> list[tuple[str, ...]]:
    """The precision fields of each case, and the kernel its dispatch names where the plan names one."""
    names = [name for name in op.op.fields if name.endswith("dtype") or name == "dispatch"]
    return list(zip(*(op.columns[name].tolist() for name in names), strict=True))


def _words(precision: tuple[str, ...]) -> str:
    return "/".join(dict.fromkeys(filter(None, precision)))


def _others(what: str, ops: Sequence[str]) -> list[str]:
    return ["", *textwrap.wrap(f"{what}: {', '.join(ops)}", WIDTH, subsequent_indent="  ")] if ops else []


def _left_out(ops: Iterable[OpPlan]) -> list[str]:
    rows = [
        [op.op.name, entry.rule, str(entry.cases), entry.reason]
        for op in ops
        for entry in op.left_out
        if entry.cases
    ]
    return ["", "Left out:", *_table(["op", "rule", "cases", "reason"], rows)] if rows else []


def _stale(root: Path, states: Sequence[ShardState]) -> list[str]:
    stale = [state for state in states if not state.done]
    if not stale:
        return ["", "Every shard is there."] if states else []
    reasons = Counter((state.shard.op, why(root, state)) for state in stale)
    rows = [[op, str(count), reason] for (op, reason), count in sorted(reasons.items())]
    return ["", "Stale shards:", *_table(["op", "shards", "why"], rows)]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    numeric = [all(row[column].isdigit() or not row[column] for row in rows) for column in range(len(head))]

    def line(row: Sequence[str]) -> str:
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        return "  " + "  ".join(cells).rstrip()

    return [line(head), line(["-" * width for width in widths]), *map(line, rows)]


def duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
