"""cases/models/*.yaml: the shapes of models, as their config.json gives them."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from opatlas.config.document import Section
from opatlas.errors import Problems


@dataclass(frozen=True)
class Model:
    """One checkpoint: its path on the hub, its architecture, and its facts by kind.

    `also` are the paths of other checkpoints with the same facts.
    """

    name: str
    architecture: str
    also: tuple[str, ...]
    backends: tuple[str, ...] | None
    facts: Mapping[str, tuple[Any, ...]]
    file: str

    def planned_for(self, backend: str) -> bool:
        return self.backends is None or backend in self.backends

    def named_in(self, names: Iterable[str]) -> bool:
        """Whether one of `names` is this model's path or architecture."""
        return self.name in names or self.architecture in names


@cache
def fact_kinds() -> tuple[str, ...]:
    folder = Path(__file__).parent / "facts"
    return tuple(sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__"))


def load(folder: Path, problems: Problems) -> list[Model]:
    """Every model of every file, in the order of their names."""
    readers = {kind: importlib.import_module(f"opatlas.catalogue.facts.{kind}").read for kind in fact_kinds()}
    models: dict[str, Model] = {}
    known: dict[str, str] = {}
    for path in sorted(folder.glob("*.yaml")):
        file = f"cases/models/{path.name}"
        top = Section.read(path, problems, file)
        for name, section in top.sections():
            facts = {
                kind: tuple(_read(read, record) for record in section.records(kind, []))
                for kind, read in readers.items()
            }
            facts = {kind: records for kind, records in facts.items() if records}
            models[name] = Model(
                name,
                section.text("architecture"),
                tuple(section.texts("also", [])),
                tuple(section.texts("backends")) if "backends" in section else None,
                facts,
                file,
            )
            section.done()
            if not facts:
                top.wrong(name, f"has no facts: expected at least one of {', '.join(readers)}")
            for path_on_hub in (name, *models[name].also):
                if path_on_hub in known:
                    top.wrong(name, f"{path_on_hub} stands in {known[path_on_hub]} too")
                known[path_on_hub] = file
    return [models[name] for name in sorted(models)]


def _read(read: Any, record: Section) -> Any:
    fact = read(record)
    record.done()
    return fact
