"""The plan: which cases a dataset has, who wants each, and what was left out and why.

plan = dedup(grid cases + model-shape cases - model skips) - other skips
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from opatlas.catalogue.load import Catalogue
from opatlas.catalogue.models import Model
from opatlas.config.datasets import Config, Dataset
from opatlas.config.frameworks import Runtime
from opatlas.config.platforms import Limits
from opatlas.config.settings import SMOKE_CASES, Subset
from opatlas.errors import UserError
from opatlas.ops.ids import formatter
from opatlas.ops.spec import GRID, Columns, Op, Work, load_op

Matcher = Callable[[Any], bool]


@dataclass(frozen=True)
class LeftOut:
    """Cases that one rule kept out of the plan (cases that another owner brings back don't count)."""

    rule: str
    reason: str
    cases: int


@dataclass(frozen=True)
class OpPlan:
    """The cases of one op in one dataset, in the order of their fields."""

    op: Op
    runtime: Runtime
    runner: bool
    cases: Sequence[Any]
    owners: Mapping[Any, tuple[str, ...]]
    left_out: tuple[LeftOut, ...]
    cut: int = 0

    @cached_property
    def ids(self) -> list[str]:
        """Case ids, in the order of `cases`."""
        return list(map(formatter(self.op.name), self.cases))

    @cached_property
    def columns(self) -> Columns:
        return self.op.columns(self.cases)

    @cached_property
    def work(self) -> Work:
        return self.op.work(self.columns)

    def group(self, case: Any) -> str:
        """The (model, dtype) group that failures of a case are counted in."""
        return f"{self.owners[case][0]} {getattr(case, self.op.dtype)}"


@dataclass(frozen=True)
class Plan:
    """Everything a dataset measures, before it is cut into shards."""

    dataset: Dataset
    ops: tuple[OpPlan, ...]
    pinned_elsewhere: tuple[str, ...]

    @property
    def cases(self) -> int:
        return sum(len(op.cases) for op in self.ops)

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
    plan = Plan(dataset, tuple(ops), tuple(elsewhere))
    if dataset.subset:
        plan = _cut(plan, dataset.subset, catalogue, config.settings.seed)
    if not plan.cases:
        raise UserError(f"{dataset.target}: the plan is empty")
    return plan


def _plan_op(catalogue: Catalogue, dataset: Dataset, op: Op, runtime: Runtime, runner: bool) -> OpPlan:
    owners: dict[Any, list[str]] = {}
    dropped: dict[tuple[str, str], set[Any]] = {}
    limits = dataset.platform.limits
    precisions = catalogue.precisions[dataset.backend][op.name]
    models = catalogue.models_for(dataset.backend)
    model_skips, case_skips = _skips(catalogue, dataset, op)
    by_name = {model.name: model for model in models}
    for owner, batch in op.expand(catalogue.grids[op.name], models, precisions):
        if limits.models is not None and owner not in limits.models:
            dropped.setdefault(("limits.models", "the platform plans named models only"), set()).update(batch)
            continue
        for rule, matches in model_skips(by_name.get(owner)):
            batch = _split(batch, matches, dropped.setdefault(rule, set()))
        for case in batch:
            owners.setdefault(case, []).append(owner)
    kept = list(owners)
    for rule, matches in [*case_skips, *_limit_rules(limits, op), *_ceiling_rules(limits, op, kept)]:
        kept = _split(kept, matches, dropped.setdefault(rule, set()))
    kept.sort()
    left_out = _account(dropped, set(kept))
    if not kept and not any(entry.cases for entry in left_out):
        place = f"cases/ops/{op.name}.yaml"
        raise UserError(f"{place}: {op.name} has no case for {dataset.base}, and no skip entry says why")
    _check_keys(op, kept)
    return OpPlan(op, runtime, runner, kept, {case: _owners(owners[case]) for case in kept}, left_out)


def _owners(names: list[str]) -> tuple[str, ...]:
    """Each owner once; models before the sweep, so that a case's group names a model where it can."""
    if len(names) == 1:
        return (names[0],)
    return tuple(sorted(set(names), key=lambda name: (name == GRID, name)))


def _split(cases: Iterable[Any], matches: Matcher, taken: set[Any]) -> list[Any]:
    kept = []
    for case in cases:
        if matches(case):
            taken.add(case)
        else:
            kept.append(case)
    return kept


Rule = tuple[tuple[str, str], Matcher]


def _skips(
    catalogue: Catalogue, dataset: Dataset, op: Op
) -> tuple[Callable[[Model | None], list[Rule]], list[Rule]]:
    """Skips that name a model, as a function of the owner, and the others."""
    entries = [
        s for s in catalogue.skips if s.concerns(dataset.backend, op.name, dataset.platform.sm, op.fields)
    ]
    others = [((s.label, s.reason), s.matcher(op.fields)) for s in entries if s.models is None]
    named = [s for s in entries if s.models is not None]

    def of_model(model: Model | None) -> list[Rule]:
        return [
            ((s.label, s.reason), s.matcher(op.fields))
            for s in named
            if model and s.models and (model.name in s.models or model.architecture in s.models)
        ]

    return of_model, others


def _limit_rules(limits: Limits, op: Op) -> Iterator[Rule]:
    for field, allowed in limits.fields.get(op.name, {}).items():
        if field not in op.fields:
            raise UserError(
                f"config/platforms.yaml: limits.fields.{op.name}.{field}: {op.name} has no such field; "
                f"fields: {', '.join(op.fields)}"
            )
        index, wanted = op.fields.index(field), frozenset(allowed)
        rule = f"limits.fields.{op.name}.{field}"
        yield (rule, "a value the platform does not plan"), _outside(index, wanted)


def _outside(index: int, wanted: frozenset[Any]) -> Matcher:
    return lambda case: case[index] not in wanted


def _ceiling_rules(limits: Limits, op: Op, cases: list[Any]) -> Iterator[Rule]:
    if not cases or (limits.flops is None and limits.bytes is None):
        return
    work = op.work(op.columns(cases))
    for rule, bound, amount in (
        ("limits.gflop", limits.flops, work.flops),
        ("limits.mbytes", limits.bytes, work.moved_bytes + work.activation_bytes),
    ):
        if bound is not None:
            heavy = {case for case, value in zip(cases, amount, strict=True) if value > bound}
            yield (rule, "more work than the platform plans"), heavy.__contains__


def _account(dropped: Mapping[tuple[str, str], set[Any]], kept: set[Any]) -> tuple[LeftOut, ...]:
    """Each left-out case counted once, under the first rule that took it."""
    counted: set[Any] = set(kept)
    entries = []
    for (rule, reason), cases in dropped.items():
        new = cases - counted
        counted |= new
        entries.append(LeftOut(rule, reason, len(new)))
    return tuple(entries)


def _check_keys(op: Op, cases: Sequence[Any]) -> None:
    """Two cases of one table key would time different work under one name."""
    columns = op.columns(cases)
    by_name = {column.name: column for column in op.table.columns}
    values = [by_name[name].values(columns) for name in op.table.key]
    seen: dict[tuple[Any, ...], Any] = {}
    for case, *key in zip(cases, *(column.tolist() for column in values), strict=True):
        first = seen.setdefault(tuple(key), case)
        if first is not case:
            ids = formatter(op.name)
            raise UserError(
                f"cases/ops/{op.name}.yaml: two cases share one key of {op.table.name}, "
                f"so their rows could not be told apart:\n  {ids(first)}\n  {ids(case)}"
            )


def _cut(plan: Plan, subset: Subset, catalogue: Catalogue, seed: int) -> Plan:
    """The part of a plan that a subset asks for."""
    planned = [op.op.name for op in plan.ops]
    names = {model.name for model in catalogue.models_for(plan.dataset.backend)}
    _known("ops", subset.ops, planned)
    _known("models", subset.models, names)
    fields = {field for op in plan.ops for field in op.op.fields}
    _known("cases", [condition.field for condition in subset.cases], fields)
    kept = {
        op.op.name: [case for case in op.cases if _wanted(op, case, subset)]
        for op in plan.ops
        if not subset.ops or op.op.name in subset.ops
    }
    if subset.smoke:
        kept = {
            name: _draw([(name, case) for case in cases], SMOKE_CASES, seed).get(name, [])
            for name, cases in kept.items()
        }
    if subset.limit is not None:
        kept = _draw([(name, case) for name, cases in kept.items() for case in cases], subset.limit, seed)
    ops = []
    for op in plan.ops:
        cases = sorted(kept.get(op.op.name, []))
        if cases:
            owners = {case: op.owners[case] for case in cases}
            cut = len(op.cases) - len(cases)
            ops.append(OpPlan(op.op, op.runtime, op.runner, cases, owners, op.left_out, cut))
    if not ops:
        raise UserError(f"{plan.dataset.target}: the subset has no case of {plan.dataset.base}")
    return Plan(plan.dataset, tuple(ops), plan.pinned_elsewhere)


def _known(key: str, wanted: Iterable[str], known: Iterable[str]) -> None:
    options = sorted(known)
    for name in wanted:
        if name not in options:
            near = difflib.get_close_matches(name, options, n=3)
            hint = f"did you mean {', '.join(near)}?" if near else f"known: {', '.join(options)}"
            raise UserError(f"--config {key}: there is no {name!r} in this plan; {hint}")


def _wanted(op: OpPlan, case: Any, subset: Subset) -> bool:
    if subset.models and not any(owner in subset.models for owner in op.owners[case]):
        return False
    return all(
        condition.field in op.op.fields and condition.holds(getattr(case, condition.field))
        for condition in subset.cases
    )


def _draw(cases: list[tuple[str, Any]], count: int, seed: int) -> dict[str, list[Any]]:
    """`count` cases drawn by the seed; adding a case changes at most one of the drawn."""

    def rank(item: tuple[str, Any]) -> bytes:
        return hashlib.sha256(f"{seed}/{formatter(item[0])(item[1])}".encode()).digest()

    drawn: dict[str, list[Any]] = {}
    for name, case in sorted(cases, key=rank)[:count]:
        drawn.setdefault(name, []).append(case)
    return drawn
