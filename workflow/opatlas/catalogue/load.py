"""Reads the whole of cases/ at once and checks that its parts fit together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opatlas.catalogue import dispatch, labels, models, skips, unverified
from opatlas.catalogue.dispatch import Dispatch
from opatlas.catalogue.labels import LabelRule, Labels, Relabel
from opatlas.catalogue.matching import Match
from opatlas.catalogue.models import Model
from opatlas.catalogue.skips import Skip
from opatlas.catalogue.unverified import Unverified
from opatlas.config.document import Section
from opatlas.errors import Problems
from opatlas.ops.dtypes import BYTES
from opatlas.ops.spec import Precision, load_op, op_names


@dataclass(frozen=True)
class Catalogue:
    """All that cases/ says: grids by op, models, the precisions that each backend declares per op, rules."""

    grids: Mapping[str, Any]
    models: tuple[Model, ...]
    precisions: Mapping[str, Mapping[str, tuple[Precision, ...]]]
    skips: tuple[Skip, ...]
    dispatch: tuple[Dispatch, ...] = ()
    unverified: tuple[Unverified, ...] = ()
    label_rules: tuple[LabelRule, ...] = ()
    relabels: tuple[Relabel, ...] = ()

    def ops(self, backend: str) -> list[str]:
        """The ops that a backend declares, in alphabetical order."""
        return sorted(self.precisions.get(backend, {}))

    def labels(self, backend: str, sm: int | None) -> Labels:
        """What is said of the labels of a backend on an SM."""
        rules = tuple(rule for rule in self.label_rules if rule.match.speaks_of(backend, sm))
        relabels = tuple(entry for entry in self.relabels if entry.match.speaks_of(backend, sm))
        return Labels(backend, sm, rules, relabels)

    def models_for(self, backend: str) -> list[Model]:
        return [model for model in self.models if model.planned_for(backend)]


def load(root: Path) -> Catalogue:
    """Reads cases/ under `root`; one UserError lists every mistake of every file."""
    problems = Problems()
    cases = root / "cases"
    catalogue = Catalogue(
        _grids(cases / "ops", problems),
        tuple(models.load(cases / "models", problems)),
        _precisions(cases / "backends.yaml", problems),
        tuple(skips.load(cases / "skips.yaml", problems)),
        tuple(dispatch.load(cases / "dispatch.yaml", problems)),
        tuple(unverified.load(cases / "unverified.yaml", problems)),
        tuple(labels.load_rules(cases / "labels.yaml", problems)),
        tuple(labels.load_relabels(cases / "relabels.yaml", problems)),
    )
    _check(catalogue, problems)
    problems.raise_if_any()
    return catalogue


def _grids(folder: Path, problems: Problems) -> dict[str, Any]:
    """The sweep of each op; ops that name one file share what is read from it."""
    files: dict[tuple[str, Callable[[Section], Any]], Any] = {}
    grids = {}
    for name in op_names():
        op = load_op(name)
        key = (op.sweep or name, op.read_grid)
        if key not in files:
            section = Section.read(folder / f"{key[0]}.yaml", problems, f"cases/ops/{key[0]}.yaml")
            files[key] = op.read_grid(section)
            section.done()
        grids[name] = files[key]
    return grids


def _precisions(path: Path, problems: Problems) -> dict[str, dict[str, tuple[Precision, ...]]]:
    top = Section.read(path, problems, "cases/backends.yaml")
    declared: dict[str, dict[str, tuple[Precision, ...]]] = {}
    for backend, ops in top.sections():
        declared[backend] = {}
        for name in ops:
            if name not in op_names():
                ops.wrong(name, f"there is no op of this name; known: {', '.join(op_names())}")
                continue
            records = ops.records(name)
            declared[backend][name] = tuple(_precision(name, record) for record in records)
            if len({tuple(sorted(p.items())) for p in declared[backend][name]}) < len(records):
                ops.wrong(name, "declares one precision twice")
    return declared


def _precision(name: str, record: Section) -> Precision:
    op = load_op(name)
    precision = {key: record.text(key) for key in op.precision}
    record.done()
    for key, value in precision.items():
        if key.endswith("dtype") and value and value not in BYTES:
            record.wrong(key, f"there is no precision {value!r}; known: {', '.join(BYTES)}")
    return precision


def _check(catalogue: Catalogue, problems: Problems) -> None:
    backends = list(catalogue.precisions)
    for model in catalogue.models:
        for backend in model.backends or ():
            if backend not in backends:
                place = f"{model.file}: {model.name}.backends"
                problems.add(f"{place}: there is no backend {backend!r} ({', '.join(backends)})")
    rules: tuple[Skip | Dispatch | Unverified | LabelRule | Relabel, ...]
    rules = (
        *catalogue.skips,
        *catalogue.dispatch,
        *catalogue.unverified,
        *catalogue.label_rules,
        *catalogue.relabels,
    )
    for entry in rules:
        _check_names(entry.match, catalogue, problems)


def _check_names(match: Match, catalogue: Catalogue, problems: Problems) -> None:
    for backend in match.backends or ():
        if backend not in catalogue.precisions:
            known = ", ".join(catalogue.precisions)
            problems.add(
                f"{match.label}: backend: there is no backend {backend!r} in cases/backends.yaml ({known})"
            )
    for name in match.models or ():
        alias = [model.name for model in catalogue.models if name in model.also]
        if alias:
            problems.add(f"{match.label}: model: {name} has the shapes of {alias[0]}: name that one")
        elif not any(model.named_in((name,)) for model in catalogue.models):
            problems.add(f"{match.label}: model: there is no model or architecture {name!r} in cases/models")
