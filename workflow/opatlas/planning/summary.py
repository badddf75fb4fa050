"""A plan for people: what a dry run prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from opatlas.planning.dataset import PlannedDataset
from opatlas.planning.plan import OpPlan
from opatlas.shards.reasons import why
from opatlas.shards.state import ShardState


def text(root: Path, planned: PlannedDataset, states: Sequence[ShardState]) -> str:
    """Cases per op and precision, what was left out and why, shards, which are stale and why."""
    plan = planned.plan
    lines = ["", f"Plan of {planned.dataset.target}", ""]
    lines += _table(
        ["op", "precision", "cases", "rows missing", "shards", "to measure", "device time"],
        [row for op in plan.ops for row in _op_rows(op, [s for s in states if s.shard.op == op.op.name])],
    )
    for op in plan.ops:
        if not op.runner:
            lines.append(f"{op.op.name}: planned, no runner")
    for name in plan.pinned_elsewhere:
        lines.append(f"{name}: pinned at another version")
    lines += _left_out(plan.ops)
    lines += _stale(root, states)
    seconds = sum(state.missing_s for state in states)
    missing = sum(len(state.missing) for state in states)
    jobs = sum(bool(state.missing) for state in states)
    lines += [
        "",
        f"{plan.cases} cases ({plan.case_plan_hash}), {len(states)} shards; "
        f"to measure: {missing} cases in {jobs} jobs, about {duration(seconds)} of device time",
    ]
    if subset := planned.dataset.subset:
        cut = sum(op.cut for op in plan.ops)
        seed = f", drawn with seed {planned.config.settings.seed}" if subset.limit or subset.smoke else ""
        lines.append(f"subset {subset.name}: {cut} cases of the whole dataset are not in it{seed}")
    return "\n".join([*lines, ""])


def _op_rows(op: OpPlan, states: Sequence[ShardState]) -> Iterable[list[str]]:
    missing = {key.case for state in states for key in state.missing}
    by_precision: dict[str, list[bool]] = {}
    for case_id, case in zip(op.ids, op.cases, strict=True):
        by_precision.setdefault(_precision(op, case), []).append(case_id in missing)
    first = True
    for precision, flags in by_precision.items():
        shards, to_measure, time = "", "", ""
        if first and op.runner:
            shards, to_measure = str(len(states)), str(sum(bool(state.missing) for state in states))
            time = duration(sum(state.missing_s for state in states))
        yield [
            op.op.name if first else "",
            precision,
            str(len(flags)),
            str(sum(flags)),
            shards,
            to_measure,
            time,
        ]
        first = False


def _precision(op: OpPlan, case: Any) -> str:
    """The precision fields of a case, with the kernel its dispatch names where the plan names one."""
    parts = [str(getattr(case, name)) for name in op.op.fields if name.endswith("dtype")]
    dispatch = getattr(case, "dispatch", "")
    return " ".join(["/".join(dict.fromkeys(parts)), *([f"on {dispatch}"] if dispatch else [])])


def _left_out(ops: Iterable[OpPlan]) -> list[str]:
    rows = [[op.op.name, entry.rule, str(entry.cases), entry.reason] for op in ops for entry in op.left_out]
    return ["", "Left out:", *_table(["op", "rule", "cases", "reason"], rows)] if rows else []


def _stale(root: Path, states: Sequence[ShardState]) -> list[str]:
    stale = [state for state in states if not state.done]
    if not stale:
        return ["", "Every shard is there."]
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
