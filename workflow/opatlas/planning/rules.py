"""What leaves cases out of a plan: entries of the skip list, and limits of the platform."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

from opatlas.catalogue.load import Catalogue
from opatlas.catalogue.skips import Skip
from opatlas.config.datasets import Dataset
from opatlas.config.platforms import Limits
from opatlas.errors import UserError
from opatlas.ops.spec import Array, Op
from opatlas.planning.rows import Codes, Mask, Rows
from opatlas.planning.wanted import Wanted

T = TypeVar("T")
# In place of a rule's number: no rule speaks of the case.
PLANNED = -1


@dataclass(frozen=True)
class Rule(Generic[T]):
    """One reason to leave cases out: its name, why, and which of given ones it speaks of."""

    name: str
    reason: str
    matches: Callable[[T], Mask]


def of_owners(catalogue: Catalogue, dataset: Dataset, op: Op) -> list[Rule[Wanted]]:
    """What is left out for whose it is, before shapes are shared."""
    allowed = dataset.platform.limits.models
    rules: list[Rule[Wanted]] = []
    if allowed is not None:
        reason = "the platform plans named models only"
        rules.append(Rule("limits.models", reason, lambda wanted: wanted.of_others(allowed)))
    for skip in _skips(catalogue, dataset, op):
        if skip.match.models is not None:
            rules.append(Rule(skip.match.label, skip.reason, partial(Wanted.of, match=skip.match)))
    return rules


def of_cases(catalogue: Catalogue, dataset: Dataset, op: Op) -> list[Rule[Rows]]:
    """What is left out whoever wants it."""
    skips = [
        Rule[Rows](skip.match.label, skip.reason, partial(Rows.passing, tests=skip.match.tests()))
        for skip in _skips(catalogue, dataset, op)
        if skip.match.models is None
    ]
    limits = dataset.platform.limits
    return [*skips, *_field_limits(limits, op), *_work_limits(limits, op)]


def _skips(catalogue: Catalogue, dataset: Dataset, op: Op) -> list[Skip]:
    sm = dataset.platform.sm
    return [s for s in catalogue.skips if s.match.concerns(dataset.backend, op.name, sm, op.fields)]


def _field_limits(limits: Limits, op: Op) -> Iterator[Rule[Rows]]:
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


def _work_limits(limits: Limits, op: Op) -> Iterator[Rule[Rows]]:
    reason = "more work than the platform plans"
    if (flops := limits.flops) is not None:
        yield Rule("limits.gflop", reason, lambda rows: _over(op.work(rows.columns()).flops, flops))
    if (moved := limits.bytes) is not None:
        yield Rule("limits.mbytes", reason, lambda rows: _over(_bytes(op, rows), moved))


def _bytes(op: Op, rows: Rows) -> Array:
    work = op.work(rows.columns())
    return work.moved_bytes + work.activation_bytes


def _over(amount: Array, bound: float) -> Mask:
    return np.asarray(amount > bound, np.bool_)


def apply(rules: Sequence[Rule[T]], to: T, count: int) -> tuple[Codes, list[bool]]:
    """For each of `count` rows the first rule that speaks of it (or PLANNED), and which speak of any."""
    taken = np.full(count, PLANNED)
    spoke = []
    for number, rule in enumerate(rules):
        mask = rule.matches(to)
        spoke.append(bool(mask.any()))
        taken[mask & (taken == PLANNED)] = number
    return taken, spoke
