"""A real SLURM for the tests of this folder: two nodes with one GPU each, both of them this machine."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.project import TARGET, Project, Run, copy_project
from support.slurm import Node, Partition, Slurm

NODES = (Node("n1"), Node("n2"))
PARTITIONS = (Partition("gpu", ("n1", "n2")),)
PLATFORM = "cpu:\n  system: cpu\n"
SLURM = "  slurm: {partition: gpu, gres: 'gpu:fake:1', cpus: 1, mem_mb: 1024}\n"
# Looks at the jobs every second, so that a test does not wait for what has happened long ago.
QUICKLY = ("--opatlas-slurm-init-seconds-before-status-checks=1", "--latency-wait=5")


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """The cluster, without accounting: squeue tells what becomes of jobs."""
    yield from running(Slurm(tmp_path_factory.mktemp("slurm"), NODES, PARTITIONS))


def running(cluster: Slurm) -> Iterator[Slurm]:
    """A cluster that runs until its user is done."""
    if missing := cluster.missing(cluster.accounting):
        pytest.fail(f"not installed: {', '.join(missing)}; `make test-cluster` installs them", pytrace=False)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


class ClusterProject(Project):
    """A copy of the project whose stub platform is a partition of a cluster."""

    def __init__(self, root: Path, cluster: Slurm) -> None:
        super().__init__(root)
        self.cluster = cluster

    def environment(self) -> dict[str, str]:
        own = {key: value for key, value in self.cluster.environment.items() if key in ("SLURM_CONF", "PATH")}
        return super().environment() | own | {"OPATLAS_STUB": str(self.path("stub.json"))}

    def arguments(self, *arguments: str) -> list[str]:
        subset = next((word for word in arguments if word.startswith("subset=")), "")
        target = f"{TARGET}@{subset.removeprefix('subset=')}" if subset else TARGET
        return ["--profile", "slurm", *QUICKLY, *arguments, "--", target]

    def submit(self, *arguments: str, **environment: str) -> Run:
        """A run on the cluster, to its end."""
        return self.snakemake(*self.arguments(*arguments), **environment)

    def start(self, *arguments: str) -> Controller:
        return Controller(self, arguments)

    def runs(self) -> list[str]:
        """The id of a case for each time that it ran."""
        path = self.path("stub.json.runs")
        return [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []

    def records(self, kind: str) -> list[str]:
        """The lines of all journals that hold a record of this kind."""
        journals = self.path("results/attempts").rglob("*.journal")
        lines = (line for path in sorted(journals) for line in path.read_text(encoding="utf-8").splitlines())
        return [line for line in lines if f'"record":"{kind}"' in line]

    def running_job(self) -> str:
        """The id of a job of this project that has begun to measure."""
        until("a job measures", lambda: self.measured() and self.cluster.squeue("%i"))
        return next(line.split()[0] for line in self.cluster.squeue("%i %T") if line.endswith("RUNNING"))

    def script(self, text: str) -> None:
        """How the stub behaves."""
        self.path("stub.json").write_text(text)


class Controller:
    """A running snakemake."""

    def __init__(self, project: ClusterProject, arguments: tuple[str, ...]) -> None:
        self.log = project.root / "controller.log"
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "snakemake", *project.arguments(*arguments)],
                cwd=project.root,
                env=project.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    @property
    def output(self) -> str:
        return self.log.read_text()

    def wait(self, timeout: float = 300) -> int:
        return self.process.wait(timeout)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def project(slurm: Slurm, tmp_path: Path) -> Iterator[ClusterProject]:
    yield from cluster_project(slurm, tmp_path)


def cluster_project(cluster: Slurm, folder: Path) -> Iterator[ClusterProject]:
    """A copy that is measured on `cluster`; what it left in the queue is cancelled at the end."""
    root = copy_project(folder / "project").root
    (root / "slurm").symlink_to("profiles/slurm")
    project = ClusterProject(root, cluster)
    project.edit("config/platforms.yaml", PLATFORM, PLATFORM + SLURM)
    project.script("{}")
    yield project
    cluster.empty()


def until(what: str, ready: Callable[[], object], timeout: float = 300) -> None:
    """Waits for something that another process does."""
    deadline = time.monotonic() + timeout
    while not ready():
        assert time.monotonic() < deadline, f"waited {timeout:.0f} s until {what}"
        time.sleep(0.2)
