"""Reads the whole of cases/ at once and checks that its parts fit together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opatlas.catalogue import models, skips
from opatlas.catalogue.models import Model
from opatlas.catalogue.skips import Skip
from opatlas.config.document import Section
from opatlas.errors import Problems
from opatlas.ops.dtypes import BYTES
from opatlas.ops.spec import Precision, load_op, op_names


@dataclass(frozen=True)
class Catalogue:
    """Grids by op, models, and the precisions that each backend declares per op."""

    grids: Mapping[str, Any]
    models: tuple[Model, ...]
    precisions: Mapping[str, Mapping[str, tuple[Precision, ...]]]
    skips: tuple[Skip, ...]

    def ops(self, backend: str) -> list[str]:
        """The ops that a backend declares, in alphabetical order."""
        return sorted(self.precisions.get(backend, {}))

    def models_for(self, backend: str) -> list[Model]:
        return [model for model in self.models if model.planned_for(backend)]


def load(root: Path) -> Catalogue:
    """Reads cases/ under `root`; one UserError lists every mistake of every file."""
    problems = Problems()
    cases = root / "cases"
    grids = {}
    for op in op_names():
        section = Section.read(cases / "ops" / f"{op}.yaml", problems, f"cases/ops/{op}.yaml")
        grids[op] = load_op(op).read_grid(section)
        section.done()
    catalogue = Catalogue(
        grids,
        tuple(models.load(cases / "models", problems)),
        _precisions(cases / "backends.yaml", problems),
        tuple(skips.load(cases / "skips.yaml", problems)),
    )
    _check(catalogue, problems)
    problems.raise_if_any()
    return catalogue


def _precisions(path: Path, problems: Problems) -> dict[str, dict[str, tuple[Precision, ...]]]:
    top = Section.read(path, problems, "cases/backends.yaml")
    declared: dict[str, dict[str, tuple[Precision, ...]]] = {}
    for backend, ops in top.sections():
        declared[backend] = {}
        for op in ops:
            if op not in op_names():
                ops.wrong(op, f"there is no op of this name; known: {', '.join(op_names())}")
                continue
            fields = load_op(op).fields
            records = ops.records(op)
            declared[backend][op] = tuple({key: record.text(key) for key in record} for record in records)
            for record, precision in zip(records, declared[backend][op], strict=True):
                for key, value in precision.items():
                    if key not in fields:
                        record.wrong(key, f"{op} has no such field; fields: {', '.join(fields)}")
                    elif value not in BYTES:
                        record.wrong(key, f"there is no precision {value!r}; known: {', '.join(BYTES)}")
    return declared


def _check(catalogue: Catalogue, problems: Problems) -> None:
    known_models = {model.name for model in catalogue.models} | {m.architecture for m in catalogue.models}
    all_fields = {field for op in op_names() for field in load_op(op).fields}
    for model in catalogue.models:
        for backend in model.backends or ():
            if backend not in catalogue.precisions:
                known = ", ".join(catalogue.precisions)
                problems.add(
                    f"{model.file}: {model.name}.backends: there is no backend {backend!r} ({known})"
                )
    for skip in catalogue.skips:
        place = f"cases/skips.yaml: {skip.label}"
        for op in skip.ops or ():
            if op not in op_names():
                problems.add(f"{place}.op: there is no op {op!r}; known: {', '.join(op_names())}")
        for name in skip.models or ():
            if name not in known_models:
                problems.add(f"{place}.model: there is no model or architecture {name!r} in cases/models")
        for field in skip.where:
            if field not in all_fields:
                problems.add(f"{place}.where: no op has a field {field!r}")
