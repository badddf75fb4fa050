"""Which datasets there are, and how their names and paths are built."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from opatlas.config import frameworks, platforms, settings
from opatlas.config.frameworks import Frameworks, Runtime
from opatlas.config.platforms import Platform
from opatlas.config.settings import RunSettings, Subset
from opatlas.errors import Problems, UserError

RESULTS = Path("results")
# Behind a dataset's name: cases that skip entries keep out of it, in place of its own.
SKIPPED = ".skips"


@dataclass(frozen=True)
class Dataset:
    """Everything of one (backend, version, platform), or a named subset of it.

    Where `skipped`, it is what skip entries keep out, for a look whether they still hold.
    """

    backend: str
    version: str
    platform: Platform
    subset: Subset | None = None
    skipped: bool = False

    @property
    def name(self) -> str:
        """backend/version/platform, with @subset or .skips behind it."""
        if self.skipped:
            return f"{self.base}{SKIPPED}"
        return f"{self.base}@{self.subset.name}" if self.subset else self.base

    @property
    def base(self) -> str:
        """The name without the subset: what shards are filed under, so that subsets share rows."""
        return f"{self.backend}/{self.version}/{self.platform.name}"

    @property
    def target(self) -> Path:
        return RESULTS / self.name

    @property
    def plan_target(self) -> Path:
        return RESULTS / "plans" / self.name


@dataclass(frozen=True)
class Config:
    """All that the configuration says."""

    settings: RunSettings
    frameworks: Frameworks
    platforms: Mapping[str, Platform]

    def datasets(self) -> list[Dataset]:
        """Every dataset the pins and platforms allow, whole and (where one is asked for) as subset."""
        subsets = [None, self.settings.subset] if self.settings.subset else [None]
        return [
            Dataset(backend, version, platform, subset)
            for backend in self.frameworks.backends()
            for version in self.frameworks.versions(backend)
            for platform in self.platforms.values()
            if self._offered(backend, version, platform)
            for subset in subsets
        ]

    def dataset(self, name: str) -> Dataset:
        """The dataset of this name; UserError with the nearest known names otherwise."""
        known = {dataset.name: dataset for dataset in self.datasets()}
        if name.endswith(SKIPPED) and (base := known.get(name.removesuffix(SKIPPED))) and not base.subset:
            return replace(base, skipped=True)
        try:
            return known[name]
        except KeyError:
            raise UserError(self.explain(name)) from None

    def explain(self, name: str) -> str:
        """Why there is no dataset of this name, and which there are."""
        parts = name.partition("@")[0].split("/")
        backends = self.frameworks.backends()
        if len(parts) != 3:
            what = "expected results/<backend>/<version>/<platform>"
        elif parts[0] not in backends:
            what = f"there is no backend {parts[0]!r} in config/frameworks.yaml"
        elif parts[1] not in self.frameworks.versions(parts[0]):
            pinned = ", ".join(self.frameworks.versions(parts[0]))
            what = f"{parts[0]} {parts[1]!r} has no pin in config/frameworks.yaml (pinned: {pinned})"
        elif parts[2] not in self.platforms:
            what = f"there is no platform {parts[2]!r} in config/platforms.yaml"
        elif "@" in name:
            what = f"the subset {name.partition('@')[2]!r} is not asked for: add --config subset=NAME ops=..."
        else:
            what = f"{parts[0]} {parts[1]} is not pinned for the platform {parts[2]}"
        known = [dataset.name for dataset in self.datasets()]
        near = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean results/{near[0]}?" if near else ""
        return f"results/{name}: {what}.{hint}\nKnown datasets:\n" + "\n".join(
            f"  results/{n}" for n in known
        )

    def runtime(self, dataset: Dataset, op: str) -> Runtime | None:
        """The runtime of an op in a dataset; None when the op is pinned at another version."""
        pinned = self.frameworks.runtime(dataset.backend, dataset.version, op)
        if pinned is not None and dataset.platform.runtime == "host":
            return Runtime()
        return pinned

    def _offered(self, backend: str, version: str, platform: Platform) -> bool:
        pins = [p for p in self.frameworks.pins if (p.backend, p.version) == (backend, version)]
        return any(
            platform.name in pin.platforms if pin.platforms is not None else platform.sm is not None
            for pin in pins
        )


def load(root: Path, overrides: Mapping[str, Any] | None = None) -> Config:
    """Reads config/ under `root`, with `overrides` (from --config) on top of config.yaml.

    Raises one UserError that lists every mistake of every file.
    """
    problems = Problems()
    folder = root / "config"
    config = Config(
        settings.load(folder / "config.yaml", "config/config.yaml", overrides or {}, problems),
        frameworks.load(folder / "frameworks.yaml", "config/frameworks.yaml", problems),
        platforms.load(folder / "platforms.yaml", "config/platforms.yaml", problems),
    )
    for pin in config.frameworks.pins:
        for platform in pin.platforms or ():
            if platform not in config.platforms:
                place = f"config/frameworks.yaml: {pin.backend}.{pin.version}.platforms"
                problems.add(f"{place}: there is no platform {platform!r} in config/platforms.yaml")
    problems.raise_if_any()
    return config
