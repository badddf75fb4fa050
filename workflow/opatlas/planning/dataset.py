"""A dataset as planned: its cases, its shards, and the fingerprint its published form must carry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from opatlas.catalogue import load as catalogue
from opatlas.catalogue.labels import Labels
from opatlas.catalogue.load import Catalogue
from opatlas.config import datasets
from opatlas.config.datasets import Config, Dataset
from opatlas.planning import retries
from opatlas.planning.plan import Plan, make_plan
from opatlas.planning.repeats import repeat_shard
from opatlas.planning.shards import Shard, cut
from opatlas.planning.skipped import sample, sample_shard
from opatlas.staleness import code
from opatlas.staleness.fingerprint import context, digest

# Where the making of a published dataset from its shards begins.
PUBLISHING = ("opatlas.tables.merge", "opatlas.checks.run", "opatlas.publishing.publish")


@dataclass(frozen=True)
class PlannedDataset:
    """A dataset's plan and its shards (of the ops that have a runner)."""

    config: Config
    plan: Plan
    shards: tuple[Shard, ...]
    repeats: tuple[Shard, ...] = ()
    labels: Labels = field(default_factory=Labels)

    @property
    def all_shards(self) -> tuple[Shard, ...]:
        """The shards whose rows are published, then those of the audit sample."""
        return (*self.shards, *self.repeats)

    @property
    def dataset(self) -> Dataset:
        return self.plan.dataset

    @cached_property
    def plan_fingerprint(self) -> str:
        """The identity of the plan tables: the cases and how they are grouped and measured."""
        shards = [[shard.op, shard.name, shard.fingerprint] for shard in self.all_shards]
        return digest({"cases": self.plan.case_plan_hash, "shards": shards})

    @cached_property
    def fingerprint(self) -> str:
        """The identity of the published dataset: the plan, and what makes tables and checks of it."""
        ops = tuple(f"opatlas.ops.{op.op.name}.op" for op in self.plan.ops)
        return digest(
            {
                "plan": self.plan_fingerprint,
                "code": code.closure((*PUBLISHING, *ops)),
                "settings": self.config.settings.publishing(),
                # Where jobs are submitted to says nothing about their rows.
                "platform": asdict(replace(self.dataset.platform, slurm=None)),
                "labels": self.labels.record(),
            }
        )

    def shards_of(self, op: str) -> list[Shard]:
        return [shard for shard in self.shards if shard.op == op]


def plan_dataset(root: Path, config: Config, cases: Catalogue, dataset: Dataset) -> PlannedDataset:
    """Plans a dataset and cuts it into shards; `root` holds the retries that were asked for."""
    runners = {op: code.has_runner(dataset.backend, op) for op in cases.ops(dataset.backend)}
    plan = make_plan(config, cases, dataset, runners)
    settings = config.settings
    if dataset.skipped:
        plan = sample(cases, plan, settings.seed)
        samples = (sample_shard(dataset, op, settings) for op in plan.ops)
        return PlannedDataset(config, plan, tuple(filter(None, samples)))
    generations = retries.read(root, dataset)
    shards = [
        shard
        for op in plan.ops
        if op.runner
        for shard in cut(
            dataset,
            op,
            context(dataset, op.op.name, op.runtime, settings.measure),
            settings.shard_minutes * 60,
            generations,
        )
    ]
    repeats = (repeat_shard(dataset, op, settings) for op in plan.ops if op.runner)
    labels = cases.labels(dataset.backend, dataset.platform.sm)
    return PlannedDataset(config, plan, tuple(shards), tuple(filter(None, repeats)), labels)


def load(
    root: Path, name: str, overrides: Mapping[str, Any] | None = None, only: str | None = None
) -> PlannedDataset:
    """Reads config/ and cases/ under `root` and plans the dataset of this name.

    `only` plans a single op, which is quicker and gives the same shards of that op.
    """
    config = datasets.load(root, overrides)
    dataset = config.dataset(name)
    cases = catalogue.load(root)
    # A drawn subset takes its cases from all ops at once.
    if only and not (dataset.subset and dataset.subset.limit):
        declared = {op: p for op, p in cases.precisions[dataset.backend].items() if op == only}
        cases = replace(cases, precisions={dataset.backend: declared})
    return plan_dataset(root, config, cases, dataset)
