"""What sets two plans apart: cases added, removed and changed, device time, and why a backend lacks some."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opatlas.catalogue.load import Catalogue
from opatlas.planning.plan import OpPlan, Plan
from opatlas.planning.rows import Rows
from opatlas.planning.shards import costs


@dataclass(frozen=True)
class OpDiff:
    """Two plans of one op: case ids of one side only, and the device time that they hold, in seconds.

    `changed` pairs cases (before, after) that fill one table key with other work, as where the framework
    now picks another kernel.
    """

    op: str
    before: int
    after: int
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[tuple[str, str], ...]
    added_s: float
    removed_s: float


def compare(before: Plan, after: Plan) -> list[OpDiff]:
    """One entry for each op of either plan, in alphabetical order; equal ones included."""
    sides = [{op.op.name: op for op in plan.ops} for plan in (before, after)]
    return [
        _compare(name, before, after, *(side.get(name) for side in sides))
        for name in sorted(set().union(*sides))
    ]


def _compare(name: str, before: Plan, after: Plan, old: OpPlan | None, new: OpPlan | None) -> OpDiff:
    old_ids, new_ids = (dict.fromkeys(op.ids) if op else {} for op in (old, new))
    removed = [index for index, case_id in enumerate(old_ids) if case_id not in new_ids]
    added = [index for index, case_id in enumerate(new_ids) if case_id not in old_ids]
    lost, gained = _by_key(old, removed), _by_key(new, added)
    changed = tuple((lost[key], gained[key]) for key in lost if key in gained)
    again = {case_id for pair in changed for case_id in pair}
    return OpDiff(
        name,
        len(old_ids),
        len(new_ids),
        tuple(case_id for case_id in gained.values() if case_id not in again),
        tuple(case_id for case_id in lost.values() if case_id not in again),
        changed,
        _seconds(new, after, added),
        _seconds(old, before, removed),
    )


def _seconds(op: OpPlan | None, plan: Plan, index: Sequence[int]) -> float:
    return float(costs(op, plan.dataset.platform)[index].sum()) if op and len(index) else 0.0


def _by_key(op: OpPlan | None, index: Sequence[int]) -> dict[tuple[Any, ...], str]:
    """The ids of some cases by table key; a key that several dispatches fill counts each."""
    if op is None or not len(index):
        return {}
    rows = op.rows.take(np.array(index))
    parts = [values.tolist() for values in op.op.table.key_values(rows.columns())]
    by_key: dict[tuple[Any, ...], str] = {}
    for key, case_id in zip(zip(*parts, strict=True), rows.ids(), strict=True):
        number = 0
        while (*key, number) in by_key:
            number += 1
        by_key[(*key, number)] = case_id
    return by_key


def lacks(catalogue: Catalogue, having: OpPlan, plan: Plan) -> tuple[Counter[str], list[str]]:
    """Why another backend's plan lacks cases of an op: counts by reason, and ids that nothing explains.

    Two backends' own kernels for one shape are no difference.
    """
    name, backend = having.op.name, plan.dataset.backend
    other = next((op for op in plan.ops if op.op.name == name), None)
    cases = _undispatched(having.rows)
    if other is None:
        where = "pins it at another version" if name in plan.pinned_elsewhere else "declares no such op"
        return Counter({f"{backend} {where}": len(cases)}), []
    planned = set(_undispatched(other.rows))
    skipped = {case: entry for entry in other.left_out if entry.rows for case in _undispatched(entry.rows)}
    declared = [tuple(p[key] for key in having.op.precision) for p in catalogue.precisions[backend][name]]
    wanted = {model.name for model in catalogue.models_for(backend)}
    at = [having.op.fields.index(key) for key in having.op.precision]
    reasons: Counter[str] = Counter()
    unexplained = []
    owners = [having.owner_sets[number] for number in having.owner_index.tolist()]
    for case, own in zip(cases, owners, strict=True):
        if case in planned:
            continue
        if case in skipped:
            reasons[f"{skipped[case].rule}: {skipped[case].reason}"] += 1
        elif tuple(case[index] for index in at) not in declared:
            reasons[f"{backend} does not declare the precision"] += 1
        elif wanted.isdisjoint(own):
            reasons[f"the models are not planned for {backend}"] += 1
        else:
            unexplained.append(having.op.name + "".join(_texts(having.op.fields, case)))
    return reasons, unexplained


def _undispatched(rows: Rows) -> list[Any]:
    if "dispatch" in rows.op.fields:
        rows = rows.replace("dispatch", [""], np.zeros(len(rows), np.int64))
    return rows.cases()


def _texts(fields: Sequence[str], case: Any) -> Iterator[str]:
    return (f"/{field}={value}" for field, value in zip(fields, case, strict=True) if value != "")
