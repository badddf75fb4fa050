"""Plans of the repository's own configuration, and of copies of it that a test changes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pytest
import yaml
from opatlas.catalogue import load as catalogue
from opatlas.catalogue.load import Catalogue
from opatlas.config import datasets
from opatlas.config.datasets import Config
from opatlas.errors import UserError
from opatlas.planning.plan import OpPlan, Plan, make_plan

REPOSITORY = Path(__file__).parents[3]


@dataclass(eq=False)
class Desk:
    """A configuration under `root`, read afresh by each Desk."""

    root: Path

    @cached_property
    def config(self) -> Config:
        return datasets.load(self.root)

    @cached_property
    def catalogue(self) -> Catalogue:
        return catalogue.load(self.root)

    def plan(self, name: str, ops: Sequence[str] = ()) -> Plan:
        """The plan of a dataset, of some ops only where they are named."""
        cases = self.catalogue
        if ops:
            declared = {
                backend: {op: by_op[op] for op in ops if op in by_op}
                for backend, by_op in cases.precisions.items()
            }
            cases = replace(cases, precisions=declared)
        return make_plan(self.config, cases, self.config.dataset(name), {})

    def op(self, name: str, op: str) -> OpPlan:
        return self.plan(name, [op]).ops[0]

    def everywhere(self, backend: str, platform: str) -> list[OpPlan]:
        """Every op that a backend plans on a platform, over all its pins."""
        found = []
        for dataset in self.config.datasets():
            if (dataset.backend, dataset.platform.name) == (backend, platform):
                # Skips may leave out every op that a version is the pin of.
                with suppress(UserError):
                    found += self.plan(dataset.name).ops
        return found

    def write(self, path: str, text: str) -> Desk:
        (self.root / path).write_text(text)
        return Desk(self.root)

    def add(self, path: str, text: str) -> Desk:
        """Appends to a file of the copy; the file need not be there."""
        file = self.root / path
        file.write_text((file.read_text() if file.exists() else "") + "\n" + text)
        return Desk(self.root)

    def change(self, path: str, old: str, new: str) -> Desk:
        text = (self.root / path).read_text()
        assert old in text
        return self.write(path, text.replace(old, new))


@pytest.fixture(scope="session")
def desk() -> Desk:
    return Desk(REPOSITORY)


@pytest.fixture
def copy(tmp_path: Path) -> Desk:
    """A copy of config/ and cases/ to change."""
    for folder in ("config", "cases"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder)
    return Desk(tmp_path)


@pytest.fixture
def model_entry() -> Callable[..., str]:
    """The text of a model's entry."""

    def entry(name: str, architecture: str = "NewForCausalLM", **facts: object) -> str:
        return yaml.safe_dump({name: {"architecture": architecture, **facts}})

    return entry
