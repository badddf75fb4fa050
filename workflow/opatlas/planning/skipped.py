"""Samples of what skip entries keep out: a few cases of each, measured to see whether the entry still holds.

They are cases and shards of a dataset of their own beside the planned one. A sampled case has a generation
of its own too, so its row is never one of the planned dataset.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from opatlas.catalogue.load import Catalogue
from opatlas.config.datasets import Dataset
from opatlas.config.settings import RunSettings
from opatlas.planning import rules
from opatlas.planning.plan import LeftOut, OpPlan, Plan
from opatlas.planning.rows import Rows
from opatlas.planning.rules import PLANNED
from opatlas.planning.shards import Shard, costs, gpus_of
from opatlas.planning.wanted import UNRESOLVED
from opatlas.staleness.fingerprint import context

# How many cases are drawn of each entry and op.
CASES = 4
# No retry and no audit sample ever reaches it.
GENERATION = -2
NAME = "k"


def sample(catalogue: Catalogue, plan: Plan, seed: int) -> Plan:
    """The plan with cases that skip entries keep out in place of its own; each is owned by its entry.

    Ops without a runner have none.
    """
    labels = {skip.match.label for skip in catalogue.skips}
    return replace(plan, ops=tuple(_sample(catalogue, plan.dataset, op, labels, seed) for op in plan.ops))


def sample_shard(dataset: Dataset, op: OpPlan, settings: RunSettings) -> Shard | None:
    """The shard of an op's sampled cases; None where there are none."""
    if not op.ids:
        return None
    return Shard(
        dataset,
        op.op.name,
        NAME,
        context(dataset, op.op.name, op.runtime, settings.measure),
        tuple(op.ids),
        tuple(costs(op, dataset.platform).tolist()),
        dict.fromkeys(op.ids, GENERATION),
        gpus_of(op),
    )


def _sample(catalogue: Catalogue, dataset: Dataset, op: OpPlan, labels: Collection[str], seed: int) -> OpPlan:
    entries = [entry for entry in op.left_out if op.runner and entry.rule in labels]
    drawn = [_draw(_alone(catalogue, dataset, op, entry), seed) for entry in entries]
    rows = _joined(op, drawn)
    owners = np.repeat(np.arange(len(drawn)), np.array([len(part) for part in drawn], np.int64))
    order = np.argsort(rows.keys(), kind="stable")
    return replace(
        op,
        rows=rows.take(order),
        owner_sets=[(entry.rule,) for entry in entries],
        owner_index=owners[order],
    )


def _alone(catalogue: Catalogue, dataset: Dataset, op: OpPlan, entry: LeftOut) -> Rows:
    """The cases that would be planned without this entry: no other rule of cases speaks of them."""
    rows = entry.rows if entry.rows is not None else _joined(op, [])
    others = [rule for rule in rules.of_cases(catalogue, dataset, op.op) if rule.name != entry.rule]
    taken, _ = rules.apply(others, rows, len(rows))
    rows = rows.take(taken == PLANNED)
    if "dispatch" in op.op.fields:
        rows = rows.take(rows.where("dispatch", lambda kernel: kernel != UNRESOLVED))
    return rows


def _draw(rows: Rows, seed: int) -> Rows:
    """A few of the cases; one that comes or goes changes at most one of them."""
    ids = rows.ids()
    ranks = [hashlib.sha256(f"{seed}/{case_id}".encode()).digest() for case_id in ids]
    return rows.take(np.array(sorted(range(len(ids)), key=ranks.__getitem__)[:CASES], np.int64))


def _joined(op: OpPlan, parts: Sequence[Rows]) -> Rows:
    """Rows that were taken of one op's, one after another."""
    none = op.rows.take(slice(0))
    codes = zip(*(part.codes for part in (none, *parts)), strict=True)
    return Rows(op.op, op.rows.values, [np.concatenate(column) for column in codes])
