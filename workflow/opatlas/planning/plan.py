"""The plan: which cases a dataset has, who wants each, and what was left out and why.

plan = dedup(grid cases + model-shape cases - model skips) - other skips
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, get_type_hints

import numpy as np

from opatlas.catalogue.load import Catalogue
from opatlas.catalogue.matching import Match, Test
from opatlas.catalogue.models import Model
from opatlas.config.datasets import Config, Dataset
from opatlas.config.frameworks import Runtime
from opatlas.config.platforms import Limits
from opatlas.config.settings import SMOKE_CASES, Subset
from opatlas.errors import UserError
from opatlas.ops.spec import GRID, Array, Columns, Op, Work, load_op
from opatlas.planning.rows import Codes, Mask, Rows, combined

PLANNED = -1


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

    @property
    def builds(self) -> int:
        """How many modules are built for the cases."""
        codes = [self.rows.codes[self.op.fields.index(name)] for name in self.op.build]
        sizes = [len(self.rows.values[self.op.fields.index(name)]) for name in self.op.build]
        return len(np.unique(combined(codes, sizes)))

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


@dataclass(frozen=True)
class Rule:
    """One reason to leave cases out: the entry's name, why, and which of given rows it speaks of."""

    name: str
    reason: str
    matches: Callable[[Rows], Mask]


def _plan_op(catalogue: Catalogue, dataset: Dataset, op: Op, runtime: Runtime, runner: bool) -> OpPlan:
    models = catalogue.models_for(dataset.backend)
    wanted, owner_names, owner = _expanded(catalogue, dataset, op, models)
    wanted, owner = _dispatched(catalogue, dataset, op, models, wanted, owner_names, owner)
    rules = [*_model_rules(catalogue, dataset, op, models, owner_names, owner)]
    taken, matched = _apply(rules, wanted)
    rows, group, taken = _distinct(wanted, taken)
    later = [*_case_rules(catalogue, dataset, op), *_limit_rules(dataset.platform.limits, op)]
    for extra in (later, [*_ceiling_rules(dataset.platform.limits, op, rows)]):
        more, spoke = _apply(extra, rows)
        taken = np.where((taken == PLANNED) & (more != PLANNED), more + len(rules), taken)
        rules, matched = rules + extra, matched + spoke
    kept = taken == PLANNED
    left_out = tuple(
        LeftOut(rule.name, rule.reason, int((taken == number).sum()), rows.take(taken == number))
        for number, rule in enumerate(rules)
        if matched[number]
    )
    idle = tuple(rule.name for rule, spoke in zip(rules, matched, strict=True) if not spoke)
    if not kept.any() and not any(entry.cases for entry in left_out):
        place = f"cases/ops/{op.sweep or op.name}.yaml"
        raise UserError(f"{place}: {op.name} has no case for {dataset.base}, and no skip entry says why")
    planned = rows.take(kept)
    _resolve_dispatch(catalogue, dataset, op, planned)
    sets, index = _owners(owner_names, owner, group, kept)
    unverified = _unverified(catalogue, dataset, op)
    plan = OpPlan(op, runtime, runner, planned, sets, index, left_out, idle, unverified)
    _check_keys(plan)
    return plan


def _expanded(
    catalogue: Catalogue, dataset: Dataset, op: Op, models: Sequence[Model]
) -> tuple[Rows, list[str], Codes]:
    """Every case that someone wants, the owners' names (models, then the sweep), and whose each case is."""
    names = [*(model.name for model in models), GRID]
    at = {name: index for index, name in enumerate(names)}
    declared = catalogue.precisions[dataset.backend][op.name]
    batches = list(op.expand(catalogue.grids[op.name], models, declared))
    owners = np.array([at[batch.owner] for batch in batches], np.int64)
    counts = [len(batch.heads) * len(batch.points) for batch in batches]
    return Rows.of(op, batches), names, np.repeat(owners, counts)


UNRESOLVED = "?"


def _dispatched(
    catalogue: Catalogue,
    dataset: Dataset,
    op: Op,
    models: Sequence[Model],
    wanted: Rows,
    names: Sequence[str],
    owner: Codes,
) -> tuple[Rows, Codes]:
    """The cases with the kernel that the framework picks for each; several kernels make several cases."""
    concerned = _dispatch_of(catalogue, dataset, op)
    if not concerned:
        return wanted, owner
    choices: list[tuple[str, ...]] = [(UNRESOLVED,)]
    choice = np.zeros(len(wanted), np.int64)
    for entry in concerned:
        if dataset.platform.sm is None or entry.match.sms is None or dataset.platform.sm in entry.match.sms:
            choices.append(entry.kernels)
            choice[_matching(entry.match, models, names, owner)(wanted)] = len(choices) - 1
    kernels = sorted({kernel for kernels in choices for kernel in kernels})
    counts = np.array([len(kernels) for kernels in choices])[choice]
    index = np.repeat(np.arange(len(wanted)), counts)
    nth = np.arange(len(index)) - np.repeat(np.cumsum(counts) - counts, counts)
    most = max(map(len, choices))
    table = np.array([[kernels.index(c[min(n, len(c) - 1)]) for n in range(most)] for c in choices])
    return wanted.take(index).replace("dispatch", kernels, table[choice[index], nth]), owner[index]


def _dispatch_of(catalogue: Catalogue, dataset: Dataset, op: Op) -> list[Any]:
    return [
        entry
        for entry in catalogue.dispatch
        if entry.match.backends
        and dataset.backend in entry.match.backends
        and entry.match.ops
        and op.name in entry.match.ops
    ]


def _resolve_dispatch(catalogue: Catalogue, dataset: Dataset, op: Op, planned: Rows) -> None:
    if not _dispatch_of(catalogue, dataset, op):
        return
    open_cases = planned.take(planned.where("dispatch", lambda kernel: kernel == UNRESOLVED))
    if len(open_cases):
        raise UserError(
            f"cases/dispatch.yaml: no entry says which kernel {dataset.backend} runs on "
            f"{dataset.platform.name} for {len(open_cases)} cases of {op.name}, as "
            f"{open_cases.take(slice(1)).ids()[0]}"
        )


def _matching(
    match: Match, models: Sequence[Model], names: Sequence[str], owner: Codes
) -> Callable[[Rows], Mask]:
    """Which wanted rows an entry speaks of, by their owner and fields."""
    fits = np.array(
        [
            match.models is None or (index < len(models) and models[index].named_in(match.models))
            for index in range(len(names))
        ]
    )
    tests = match.tests()
    return lambda rows: fits[owner] & _passing(tests, rows)


def _passing(tests: Sequence[tuple[str, Test]], rows: Rows) -> Mask:
    passed = np.ones(len(rows), np.bool_)
    for name, test in tests:
        passed &= rows.where(name, test)
    return passed


def _model_rules(
    catalogue: Catalogue,
    dataset: Dataset,
    op: Op,
    models: Sequence[Model],
    names: Sequence[str],
    owner: Codes,
) -> Iterator[Rule]:
    """What is left out for whose it is, before shapes are shared."""
    allowed = dataset.platform.limits.models
    if allowed is not None:
        outside = np.array([name not in allowed for name in names])
        yield Rule("limits.models", "the platform plans named models only", lambda rows: outside[owner])
    for skip in _skips(catalogue, dataset, op):
        if skip.match.models is not None:
            yield Rule(skip.match.label, skip.reason, _matching(skip.match, models, names, owner))


def _case_rules(catalogue: Catalogue, dataset: Dataset, op: Op) -> Iterator[Rule]:
    for skip in _skips(catalogue, dataset, op):
        if skip.match.models is None:
            yield Rule(skip.match.label, skip.reason, partial(_passing, skip.match.tests()))


def _skips(catalogue: Catalogue, dataset: Dataset, op: Op) -> list[Any]:
    sm = dataset.platform.sm
    return [s for s in catalogue.skips if s.match.concerns(dataset.backend, op.name, sm, op.fields)]


def _limit_rules(limits: Limits, op: Op) -> Iterator[Rule]:
    for name, allowed in limits.fields.get(op.name, {}).items():
        if name not in op.fields:
            raise UserError(
                f"config/platforms.yaml: limits.fields.{op.name}.{name}: {op.name} has no such field; "
                f"fields: {', '.join(op.fields)}"
            )
        rule = f"limits.fields.{op.name}.{name}"
        yield Rule(rule, "a value the platform does not plan", partial(_outside, name, allowed))


def _outside(name: str, allowed: Sequence[Any], rows: Rows) -> Mask:
    return rows.where(name, lambda value: value not in allowed)


def _ceiling_rules(limits: Limits, op: Op, rows: Rows) -> Iterator[Rule]:
    if not len(rows) or (limits.flops is None and limits.bytes is None):
        return
    work = op.work(rows.columns())
    for name, bound, amount in (
        ("limits.gflop", limits.flops, work.flops),
        ("limits.mbytes", limits.bytes, work.moved_bytes + work.activation_bytes),
    ):
        if bound is not None:
            yield Rule(name, "more work than the platform plans", partial(_heavier, amount, bound))


def _heavier(amount: Array, bound: float, rows: Rows) -> Mask:
    return np.asarray(amount > bound)


def _apply(rules: Sequence[Rule], rows: Rows) -> tuple[Codes, list[bool]]:
    """For each row the first rule that speaks of it (or PLANNED), and which rules speak of any."""
    taken = np.full(len(rows), PLANNED)
    matched = []
    for number, rule in enumerate(rules):
        mask = rule.matches(rows)
        matched.append(bool(mask.any()))
        taken[mask & (taken == PLANNED)] = number
    return taken, matched


def _distinct(wanted: Rows, taken: Codes) -> tuple[Rows, Codes, Codes]:
    """Each case once and in order; which one each wanted row is (-1 where it was taken); the rule of each.

    A case is planned when anyone's row of it is.
    """
    if not len(wanted):
        return wanted, taken, taken
    keys = wanted.keys()
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=keys[order[0]] - 1))
    group = np.empty(len(wanted), np.int64)
    group[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(order)))
    first_rule = np.minimum.reduceat(taken[order], starts)
    group[taken != PLANNED] = -1
    return wanted.take(order[starts]), group, first_rule


def _owners(
    names: Sequence[str], owner: Codes, group: Codes, kept: Mask
) -> tuple[list[tuple[str, ...]], Codes]:
    """The distinct sets of owners, and which one each planned case has."""
    sets: dict[tuple[str, ...], int] = {(): 0}
    index = np.zeros(len(kept), np.int64)
    order = np.argsort(owner, kind="stable")
    borders = np.searchsorted(owner[order], np.arange(len(names) + 1))
    for name, first, last in zip(names, borders[:-1], borders[1:], strict=True):
        mine = group[order[first:last]]
        mine = mine[mine >= 0]
        known = list(sets)
        after = np.zeros(len(known), np.int64)
        for old in np.flatnonzero(np.bincount(index[mine], minlength=len(known))).tolist():
            after[old] = sets.setdefault((*known[old], name), len(sets))
        index[mine] = after[index[mine]]
    return list(sets), index[kept]


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
    if subset.smoke:
        kept = {name: _draw({name: index}, by_name, SMOKE_CASES, seed)[name] for name, index in kept.items()}
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
