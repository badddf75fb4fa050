"""Labels that were put right: some rows are published under other case fields than they were planned with."""

from __future__ import annotations

from typing import Any

from opatlas.ops.spec import Columns
from opatlas.planning.dataset import PlannedDataset
from opatlas.planning.plan import OpPlan


def published_fields(planned: PlannedDataset, op: OpPlan) -> tuple[Columns, list[dict[str, Any]]]:
    """The fields of an op's planned cases as tables publish them, and what was relabelled.

    The case ids stay those that were measured; nothing but the columns of the changed fields differs.
    """
    fields = dict(op.columns)
    notes = []
    for relabel in planned.labels.relabels_of(op.op.name, op.op.fields):
        chosen = op.rows.passing(relabel.match.tests())
        for name, value in relabel.to.items():
            fields[name] = fields[name].copy()
            fields[name][chosen] = value
        note = {"entry": relabel.match.label, "op": op.op.name, "to": dict(relabel.to)}
        notes.append({**note, "reason": relabel.reason, "cases": int(chosen.sum())})
    return fields, notes
