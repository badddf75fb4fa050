"""What a backend's models and sweeps want of an op, before anything is left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opatlas.catalogue.dispatch import Dispatch
from opatlas.catalogue.load import Catalogue
from opatlas.catalogue.matching import Match
from opatlas.catalogue.models import Model
from opatlas.config.datasets import Dataset
from opatlas.errors import UserError
from opatlas.ops.spec import GRID, Op
from opatlas.planning.rows import Codes, Mask, Rows

# Stands for the kernel of a case that no entry of cases/dispatch.yaml speaks of.
UNRESOLVED = "?"


@dataclass(frozen=True)
class Wanted:
    """A row for each owner of each case. `owner` is an index into `names`: the models', then the sweep."""

    rows: Rows
    models: Sequence[Model]
    owner: Codes

    @property
    def names(self) -> list[str]:
        return [*(model.name for model in self.models), GRID]

    def of(self, match: Match) -> Mask:
        """The rows that an entry speaks of, by their owner and fields."""
        if match.models is None:
            return self.rows.passing(match.tests())
        named = [model.named_in(match.models) for model in self.models]
        return np.array([*named, False])[self.owner] & self.rows.passing(match.tests())

    def of_others(self, names: Sequence[str]) -> Mask:
        """The rows whose owner is none of these models."""
        outside = np.array([name not in names for name in self.names])
        return outside[self.owner]

    def distinct(self, planned: Mask) -> tuple[Rows, Codes, Mask]:
        """Each case once and in order, which one each row is, and which cases have a row of `planned`."""
        if not len(self.rows):
            return self.rows, self.owner, planned
        keys = self.rows.keys()
        order = np.argsort(keys, kind="stable")
        starts = np.flatnonzero(np.diff(keys[order], prepend=keys[order[0]] - 1))
        case = np.empty(len(order), np.int64)
        case[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(order)))
        return self.rows.take(order[starts]), case, np.logical_or.reduceat(planned[order], starts)

    def owners(self, case: Codes, planned: Mask, count: int) -> tuple[list[tuple[str, ...]], Codes]:
        """The distinct sets of owners, and which one each of `count` cases has, by its `planned` rows."""
        sets: dict[tuple[str, ...], int] = {(): 0}
        index = np.zeros(count, np.int64)
        order = np.argsort(self.owner, kind="stable")
        borders = np.searchsorted(self.owner[order], np.arange(len(self.models) + 2))
        for name, first, last in zip(self.names, borders[:-1], borders[1:], strict=True):
            rows = order[first:last]
            mine = case[rows[planned[rows]]]
            known = list(sets)
            after = np.zeros(len(known), np.int64)
            for old in np.flatnonzero(np.bincount(index[mine], minlength=len(known))).tolist():
                after[old] = sets.setdefault((*known[old], name), len(sets))
            index[mine] = after[index[mine]]
        return list(sets), index


def expand(catalogue: Catalogue, dataset: Dataset, op: Op) -> Wanted:
    """Every case that someone wants, on the kernel that the framework picks for it."""
    models = catalogue.models_for(dataset.backend)
    declared = catalogue.precisions[dataset.backend][op.name]
    batches = list(op.expand(catalogue.grids[op.name], models, declared))
    at = {name: index for index, name in enumerate([*(model.name for model in models), GRID])}
    owners = np.array([at[batch.owner] for batch in batches], np.int64)
    counts = [len(batch.heads) * len(batch.points) for batch in batches]
    wanted = Wanted(Rows.of(op, batches), models, np.repeat(owners, counts))
    entries = _dispatch(catalogue, dataset, op)
    return _dispatched(wanted, entries, dataset.platform.sm) if entries else wanted


def _dispatch(catalogue: Catalogue, dataset: Dataset, op: Op) -> list[Dispatch]:
    """The entries that speak of an op, on whatever hardware."""
    return [
        entry
        for entry in catalogue.dispatch
        if dataset.backend in (entry.match.backends or ()) and op.name in (entry.match.ops or ())
    ]


def _dispatched(wanted: Wanted, entries: Sequence[Dispatch], sm: int | None) -> Wanted:
    """The last entry that speaks of a row holds; each of its kernels makes a row."""
    choices: list[tuple[str, ...]] = [(UNRESOLVED,)]
    choice = np.zeros(len(wanted.rows), np.int64)
    for entry in entries:
        if entry.match.sms is None or sm in entry.match.sms:
            choices.append(entry.kernels)
            choice[wanted.of(entry.match)] = len(choices) - 1
    kernels = sorted({kernel for names in choices for kernel in names})
    counts = np.array([len(names) for names in choices])[choice]
    index = np.repeat(np.arange(len(wanted.rows)), counts)
    nth = np.arange(len(index)) - np.repeat(np.cumsum(counts) - counts, counts)
    most = max(map(len, choices))
    codes = np.array(
        [[kernels.index(names[min(n, len(names) - 1)]) for n in range(most)] for names in choices]
    )
    rows = wanted.rows.take(index).replace("dispatch", kernels, codes[choice[index], nth])
    return Wanted(rows, wanted.models, wanted.owner[index])


def check_dispatch(dataset: Dataset, op: Op, planned: Rows) -> None:
    """UserError where no entry says which kernel a planned case runs on."""
    if "dispatch" not in op.fields:
        return
    unresolved = planned.take(planned.where("dispatch", lambda kernel: kernel == UNRESOLVED))
    if len(unresolved):
        raise UserError(
            f"cases/dispatch.yaml: no entry says which kernel {dataset.backend} runs on "
            f"{dataset.platform.name} for {len(unresolved)} cases of {op.name}, as "
            f"{unresolved.take(slice(1)).ids()[0]}"
        )
