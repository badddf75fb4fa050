"""A planned dataset of the repository with made-up outcomes for its shards, under a temporary root."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from opatlas.planning.dataset import PlannedDataset, load
from opatlas.planning.shards import Shard
from opatlas.shards import file
from opatlas.tables.merge import merge_dataset, tables_folder

# Machines are shared, so no example has a deadline.
settings.register_profile("unit", deadline=None)
settings.load_profile("unit")

REPOSITORY = Path(__file__).parents[2]
NAME = "torch/2.13.0/cpu"
Outcomes = tuple[list[dict[str, Any]], list[dict[str, Any]]]


@cache
def planned_dataset(shard_minutes: float = 20.0) -> PlannedDataset:
    return load(REPOSITORY, NAME, {"shard_minutes": shard_minutes, "audit_share": 0})


def row(case_id: str, **values: Any) -> dict[str, Any]:
    """One row of a case, with a latency of its own."""
    latency = 50 + sum(case_id.encode()) % 1000 / 1000
    return {
        **dict.fromkeys(file.ROWS.names),
        "case_id": case_id,
        "generation": 0,
        "part": "",
        "kernel_source": "torch_cpu",
        "latency": latency,
        "latency_mad": 0.1,
        "latency_ci": 0.2,
        "samples": 30,
        "stop_reason": "converged",
        "timing_method": "cpu_perf_counter",
        "throttled": False,
        "kernels": ["mkl", "copy"],
        "notes": "{}",
        "attempt": "a1",
        "node": "node1",
        "device": "AMD EPYC",
        "framework_version": "2.13.0+cpu",
        **values,
    }


def failure(case_id: str, **values: Any) -> dict[str, Any]:
    return {
        **dict.fromkeys(file.FAILURES.names),
        "case_id": case_id,
        "generation": 0,
        "class": "unsupported",
        "message": "not for this shape",
        "group": "",
        "attempt": "a1",
        "node": "node1",
        **values,
    }


def attempt(name: str = "a1", **values: Any) -> dict[str, Any]:
    return {
        "id": name,
        "node": "node1",
        "job_id": None,
        "started": "2026-05-01T10:00:00+00:00",
        "versions": {"framework": "2.13.0+cpu", "torch": "2.13.0+cpu"},
        "facts": {"device": "AMD EPYC", "uuid": None},
        "cmdline": ["python3", "-m", "opatlas.harness.supervisor"],
        "log": f"results/attempts/{name}.log",
        "log_sha256": "0" * 64,
        **values,
    }


def manifest(shard: Shard, **values: Any) -> dict[str, Any]:
    return {
        "dataset": shard.dataset.base,
        "op": shard.op,
        "shard": shard.name,
        "fingerprint": shard.fingerprint,
        "context": dict(shard.context.parts),
        "context_fingerprint": shard.context.fingerprint,
        "cases": len(shard.keys),
        "attempts": [attempt()],
        "controls": [],
        **values,
    }


@dataclass
class Lab:
    """Outcomes of a dataset's shards; `change` of `write` alters those of a shard before they are written."""

    root: Path
    planned: PlannedDataset

    @property
    def folder(self) -> Path:
        return self.root / tables_folder(self.planned)

    def shards(self, op: str) -> list[Shard]:
        return self.planned.shards_of(op)

    def settings(self, **values: Any) -> None:
        """Other run settings for the same plan."""
        config = self.planned.config
        changed = replace(config, settings=replace(config.settings, **values))
        self.planned = PlannedDataset(changed, self.planned.plan, self.planned.shards)

    def write(
        self,
        shards: Iterable[Shard] | None = None,
        change: Callable[[list[dict[str, Any]]], Outcomes] | None = None,
        **values: Any,
    ) -> None:
        """Writes shards whose cases all have rows, but for what `change` makes of them."""
        for shard in self.planned.shards if shards is None else shards:
            rows = [row(key.case, generation=key.generation) for key in shard.keys]
            outcomes = change(rows) if change else (rows, [])
            file.write(self.root / shard.path, *outcomes, manifest(shard, **values))

    def merge(self) -> dict[str, Any]:
        return merge_dataset(self.planned, self.folder, self.root)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path, planned_dataset())


@pytest.fixture
def fine_lab(tmp_path: Path) -> Lab:
    """The same dataset cut into more shards."""
    return Lab(tmp_path, planned_dataset(0.1))


@pytest.fixture(scope="module")
def merged_lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """A good dataset in several shards, merged; one for all tests of a file, to be left as it is."""
    lab = Lab(tmp_path_factory.mktemp("merged"), planned_dataset(0.1))
    lab.write()
    lab.merge()
    return lab


@pytest.fixture
def make_row() -> Callable[..., dict[str, Any]]:
    return row


@pytest.fixture
def make_failure() -> Callable[..., dict[str, Any]]:
    return failure


@pytest.fixture
def make_attempt() -> Callable[..., dict[str, Any]]:
    return attempt
