"""The plan: which cases a dataset has, who wants each, and what was left out and why.

plan = dedup(grid cases + model-shape cases - model skips) - other skips
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, get_type_hints

import numpy as np

from opatlas.catalogue.load import Catalogue
from opatlas.config.datasets import Config, Dataset
from opatlas.config.frameworks import Runtime
from opatlas.config.settings import SMOKE_CASES, Subset
from opatlas.errors import UserError
from opatlas.ops.spec import Array, Columns, Op, Work, load_op
from opatlas.planning import rules
from opatlas.planning.rows import Codes, Mask, Rows, combined
from opatlas.planning.rules import PLANNED
from opatlas.planning.wanted import check_dispatch, expand


@dataclass(frozen=True)
class LeftOut:
    """Cases that one rule kept out of the plan (cases that another owner brings back don't count)."""

    rule: str
    reason: str
    cases: int
    rows: Rows | None = field(default=None, compare=False, repr=False)

    @cached_property
    def members(self) -> list[Any]:
        """The cases themselves, in the order of their fields."""
        return self.rows.cases() if self.rows is not None else []


@dataclass(frozen=True)
class OpPlan:
    """The cases of one op in one dataset, in the order of their fields.

    `left_out` are the rules that speak of a case of it, `idle` those that could and do not.
    """

    op: Op
    runtime: Runtime
    runner: bool
    rows: Rows
    owner_sets: Sequence[tuple[str, ...]]
    owner_index: Codes
    left_out: tuple[LeftOut, ...]
    idle: tuple[str, ...] = ()
    unverified: str | None = None
    cut: int = 0

    @cached_property
    def cases(self) -> list[Any]:
        return self.rows.cases()

    @cached_property
    def ids(self) -> list[str]:
        """Case ids, in the order of `cases`."""
        return self.rows.ids()

    @cached_property
    def owners(self) -> Mapping[Any, tuple[str, ...]]:
        """Who wants each case: models by name, then the sweep."""
        sets = map(self.owner_sets.__getitem__, self.owner_index.tolist())
        return dict(zip(self.cases, sets, strict=True))

    @cached_property
    def columns(self) -> Columns:
        return self.rows.columns()

    @cached_property
    def work(self) -> Work:
        return self.op.work(self.columns)

    @cached_property
    def build_order(self) -> tuple[Array, Array]:
        """Case indices with the cases of a build next to each other, and where each build begins."""
        codes = [self.rows.codes[self.op.fields.index(name)] for name in self.op.build]
        sizes = [len(self.rows.values[self.op.fields.index(name)]) for name in self.op.build]
        build = combined(codes, sizes)
        order = np.argsort(build, kind="stable")
        starts = np.flatnonzero(np.r_[True, build[order][1:] != build[order][:-1]]) if len(order) else order
        return order, starts

    @property
    def builds(self) -> int:
        """How many modules are built for the cases."""
        return len(self.build_order[1])

    def group(self, case: Any) -> str:
        """The (model, dtype) group that failures of a case are counted in."""
        return f"{self.owners[case][0]} {getattr(case, self.op.dtype)}"


@dataclass(frozen=True)
class Plan:
    """Everything a dataset measures, before it is cut into shards.

    An op that skips leave without a case stays in `ops`, empty, with what was left out. `warnings` name
    skip entries that speak of this dataset and match nothing in it.
    """

    dataset: Dataset
    ops: tuple[OpPlan, ...]
    pinned_elsewhere: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    @property
    def cases(self) -> int:
        return sum(len(op.rows) for op in self.ops)

    @cached_property
    def case_plan_hash(self) -> str:
        """sha256 over the sorted unique case ids joined by newlines."""
        digest = hashlib.sha256()
        ids = sorted(case_id for op in self.ops for case_id in op.ids)
        digest.update("\n".join(ids).encode())
        return f"sha256:{digest.hexdigest()}"


def make_plan(config: Config, catalogue: Catalogue, dataset: Dataset, runners: Mapping[str, bool]) -> Plan:
    """Expands every op of a dataset. `runners` says which ops the backend has a runner for.

    Raises UserError where a declaration can't be resolved, an op expands to nothing without a reason,
    two cases share a table key, or a subset cuts everything away.
    """
    if dataset.backend not in catalogue.precisions:
        raise UserError(f"cases/backends.yaml: {dataset.backend}: the backend declares no ops")
    ops, elsewhere = [], []
    for name in catalogue.ops(dataset.backend):
        runtime = config.runtime(dataset, name)
        if runtime is None:
            elsewhere.append(name)
            continue
        ops.append(_plan_op(catalogue, dataset, load_op(name), runtime, runners.get(name, False)))
    plan = Plan(dataset, tuple(ops), tuple(elsewhere), tuple(_idle_skips(catalogue, ops)))
    if dataset.subset:
        plan = _cut(plan, dataset.subset, catalogue, config.settings.seed)
    if not plan.cases:
        raise UserError(f"{dataset.target}: the plan is empty")
    return plan


def _plan_op(catalogue: Catalogue, dataset: Dataset, op: Op, runtime: Runtime, runner: bool) -> OpPlan:
    wanted = expand(catalogue, dataset, op)
    owner_rules = rules.of_owners(catalogue, dataset, op)
    row_rule, owners_spoke = rules.apply(owner_rules, wanted, len(wanted.rows))
    rows, case, kept = wanted.distinct(row_rule == PLANNED)
    case_rules = rules.of_cases(catalogue, dataset, op)
    taken, cases_spoke = rules.apply(case_rules, rows, len(rows))
    # A case that every owner of it loses counts under the first rule that took a row of it.
    lost = np.full(len(rows), len(owner_rules))
    np.minimum.at(lost, case, np.where(row_rule == PLANNED, len(owner_rules), row_rule))
    number = np.where(taken == PLANNED, PLANNED, taken + len(owner_rules))
    number = np.where(kept, number, lost)
    named = [(rule.name, rule.reason) for rule in owner_rules]
    named += [(rule.name, rule.reason) for rule in case_rules]
    spoke = owners_spoke + cases_spoke
    left_out = tuple(
        LeftOut(*named[at], int((number == at).sum()), rows.take(number == at))
        for at in np.flatnonzero(spoke).tolist()
    )
    planned = number == PLANNED
    if not planned.any() and not any(entry.cases for entry in left_out):
        place = f"cases/ops/{op.sweep or op.name}.yaml"
        raise UserError(f"{place}: {op.name} has no case for {dataset.base}, and no skip entry says why")
    sets, index = wanted.owners(case, row_rule == PLANNED, len(rows))
    plan = OpPlan(
        op,
        runtime,
        runner,
        rows.take(planned),
        sets,
        index[planned],
        left_out,
        tuple(name for (name, _), any_case in zip(named, spoke, strict=True) if not any_case),
        _unverified(catalogue, dataset, op),
    )
    check_dispatch(dataset, op, plan.rows)
    _check_keys(plan)
    return plan


def _unverified(catalogue: Catalogue, dataset: Dataset, op: Op) -> str | None:
    sm = dataset.platform.sm
    for entry in catalogue.unverified:
        if entry.match.concerns(dataset.backend, op.name, sm, op.fields):
            return entry.note
    return None


def _idle_skips(catalogue: Catalogue, ops: Sequence[OpPlan]) -> Iterator[str]:
    """Skip entries that name a backend and an op and match no case; general ones need not match here."""
    spoke = {entry.rule for op in ops for entry in op.left_out}
    idle = {rule for op in ops for rule in op.idle}
    for skip in catalogue.skips:
        named = skip.match.ops is not None and skip.match.backends is not None
        if named and skip.match.label in idle - spoke:
            yield f"{skip.match.label}: the skip matches nothing here: {skip.reason}"


def _check_keys(plan: OpPlan) -> None:
    """Two cases of one table key would time different work under one name."""
    op, rows = plan.op, plan.rows
    columns = [column for column in op.table.columns if column.name in op.table.key]
    plain = [column.field for column in columns if column.field]
    if "dispatch" in op.fields:
        plain.append("dispatch")
    if len(rows) < 2 or set(rows.varying()) <= set(plain):
        return
    at = [op.fields.index(name) for name in plain]
    codes, sizes = [rows.codes[index] for index in at], [len(rows.values[index]) for index in at]
    for column in columns:
        if not column.field and column.values:
            distinct, inverse = np.unique(column.values(plan.columns), return_inverse=True)
            codes.append(inverse)
            sizes.append(len(distinct))
    keys = combined(codes, sizes)
    order = np.argsort(keys, kind="stable")
    twice = np.flatnonzero(np.diff(keys[order]) == 0)
    if len(twice):
        pair = order[twice[0] : twice[0] + 2]
        ids = rows.take(pair).ids()
        wanted = [", ".join(plan.owner_sets[index]) for index in plan.owner_index[pair].tolist()]
        raise UserError(
            f"cases: two cases of {op.name} share one key of {op.table.name}, so their rows could not be "
            f"told apart:\n  {ids[0]} (wanted by {wanted[0]})\n  {ids[1]} (wanted by {wanted[1]})\n"
            "Keep one of them, by a skip entry that names the other's model."
        )


def _cut(plan: Plan, subset: Subset, catalogue: Catalogue, seed: int) -> Plan:
    """The part of a plan that a subset asks for."""
    planned = [op.op.name for op in plan.ops]
    models = catalogue.models_for(plan.dataset.backend)
    aliases = {alias: model.name for model in models for alias in (model.name, *model.also)}
    _known("ops", subset.ops, planned)
    _known("models", subset.models, aliases)
    fields = {name for op in plan.ops for name in op.op.fields}
    _known("cases", [condition.field for condition in subset.cases], fields)
    wanted = {aliases[name] for name in subset.models}
    kept = {
        op.op.name: np.flatnonzero(_wanted(op, wanted, subset))
        for op in plan.ops
        if not subset.ops or op.op.name in subset.ops
    }
    by_name = {op.op.name: op for op in plan.ops}
    if per_op := SMOKE_CASES if subset.smoke else subset.limit_per_op:
        kept = {name: _draw({name: index}, by_name, per_op, seed)[name] for name, index in kept.items()}
    if subset.limit is not None:
        kept = _draw(kept, by_name, subset.limit, seed)
    ops = []
    for name, index in kept.items():
        op = by_name[name]
        if len(index):
            ops.append(
                replace(
                    op,
                    rows=op.rows.take(index),
                    owner_index=op.owner_index[index],
                    cut=len(op.rows) - len(index),
                )
            )
    if not ops:
        raise UserError(f"{plan.dataset.target}: the subset has no case of {plan.dataset.base}")
    return Plan(plan.dataset, tuple(ops), plan.pinned_elsewhere, plan.warnings)


def _known(key: str, wanted: Iterable[str], known: Iterable[str]) -> None:
    options = sorted(known)
    for name in wanted:
        if name not in options:
            near = difflib.get_close_matches(name, options, n=3)
            hint = f"did you mean {', '.join(near)}?" if near else f"known: {', '.join(options)}"
            raise UserError(f"--config {key}: there is no {name!r} in this plan; {hint}")


def _wanted(op: OpPlan, models: set[str], subset: Subset) -> Mask:
    mask = np.ones(len(op.rows), np.bool_)
    if models:
        mask &= np.array([not models.isdisjoint(owners) for owners in op.owner_sets])[op.owner_index]
    for condition in subset.cases:
        if condition.field not in op.op.fields:
            return np.zeros(len(op.rows), np.bool_)
        if condition.sign != "=" and get_type_hints(op.op.case)[condition.field] is not int:
            raise UserError(f"--config cases: {condition.field} is a text, so only = can compare it")
        mask &= op.rows.where(condition.field, condition.holds)
    return mask


def _draw(wanted: Mapping[str, Codes], ops: Mapping[str, OpPlan], count: int, seed: int) -> dict[str, Codes]:
    """`count` cases drawn by the seed; adding a case changes at most one of the drawn."""
    ranked = []
    for name, index in wanted.items():
        for position, case_id in zip(index.tolist(), ops[name].rows.take(index).ids(), strict=True):
            ranked.append((hashlib.sha256(f"{seed}/{case_id}".encode()).digest(), name, position))
    drawn: dict[str, list[int]] = {name: [] for name in wanted}
    for _, name, position in sorted(ranked)[:count]:
        drawn[name].append(position)
    return {name: np.array(sorted(positions), np.int64) for name, positions in drawn.items()}
