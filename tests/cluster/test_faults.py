"""What clusters do to jobs, done by the real programs: the run ends complete, nothing lost, nothing twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import NODES, ClusterProject, cluster_project, running, until
from opatlas.shards import file
from support.project import TARGET
from support.slurm import Partition, Slurm

# One op of two shards, 44 cases, each of which takes a quarter of a second.
GEMM = ("--config", "subset=gemm", "ops=gemm")
SLOWLY = '{"seconds": 0.25}'


@pytest.fixture
def slow(project: ClusterProject) -> ClusterProject:
    project.script(SLOWLY)
    return project


def assert_complete(project: ClusterProject) -> None:
    """The dataset is published, and each of its cases was measured once."""
    assert project.path(f"{TARGET}@gemm/gemm_perf.parquet").exists()
    shards = [file.read(path) for path in project.shards()]
    cases = [row["case_id"] for shard in shards for row in shard.rows.to_pylist()]
    assert len(set(cases)) == len(cases) == project.measured()
    assert sum(shard.failures.num_rows for shard in shards) == 0
    assert project.cluster.squeue() == []


def processes_of(job: str) -> list[int]:
    """The processes of a SLURM job, without the daemon that watches over them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            variables = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if f"SLURM_JOB_ID={job}".encode() in variables:
            found.append(int(path.parent.name))
    return found


def test_scancel(slow: ClusterProject) -> None:
    controller = slow.start(*GEMM)
    job = slow.running_job()
    slow.cluster.command("scancel", job)
    assert controller.wait() == 0, controller.output
    assert f"SLURM job {job} for gemm" in controller.output
    assert "as CANCELLED: somebody cancelled it" in controller.output
    assert_complete(slow)


def test_kill_9_of_all_processes_of_a_job(slow: ClusterProject) -> None:
    controller = slow.start(*GEMM)
    job = slow.running_job()
    for pid in processes_of(job):
        os.kill(pid, signal.SIGKILL)
    assert controller.wait() == 0, controller.output
    assert "as FAILED" in controller.output
    assert_complete(slow)


def test_a_time_limit_that_is_too_short(slow: ClusterProject) -> None:
    """SLURM warns, the running case ends, and the next job goes on with the one after it."""
    slow.script('{"seconds": 2.5}')
    slow.edit("config/platforms.yaml", "mem_mb: 1024}", "mem_mb: 1024, max_minutes: 1}")
    controller = slow.start(*GEMM)
    assert controller.wait(600) == 0, controller.output
    ends = [line for line in slow.records("end") if '"reason":"SIGUSR1"' in line]
    assert ends, slow.records("end")
    assert_complete(slow)


def test_slurmd_is_restarted_under_a_job(slow: ClusterProject) -> None:
    controller = slow.start(*GEMM)
    slow.running_job()
    for node in NODES:
        slow.cluster.end(node.name, signal.SIGKILL)
    for node in NODES:
        slow.cluster.start_node(node.name)
    assert controller.wait() == 0, controller.output
    assert_complete(slow)


def test_slurmctld_is_away_for_a_while(slow: ClusterProject) -> None:
    controller = slow.start(*GEMM)
    slow.running_job()
    slow.cluster.end("slurmctld", signal.SIGKILL)
    until("it is said that squeue fails", lambda: "Jobs go on" in controller.output)
    slow.cluster.run_daemon("slurmctld", "slurmctld", "-D")
    assert controller.wait() == 0, controller.output
    assert "squeue answers again" in controller.output
    assert_complete(slow)


def test_a_killed_snakemake_s_jobs_are_ended_by_the_next(slow: ClusterProject) -> None:
    slow.script('{"seconds": 1}')
    first = slow.start(*GEMM)
    slow.running_job()
    until("both jobs are submitted", lambda: len(slow.cluster.squeue()) == 2)
    jobs = set(slow.cluster.squeue("%i"))
    first.kill()
    second = slow.start(*GEMM)
    assert second.wait() == 0, second.output
    assert "ended SLURM jobs of an earlier run: " in second.output
    assert len(slow.records("attempt")) == 2 * len(jobs)
    assert sum('"reason":"SIGTERM"' in line for line in slow.records("end")) == len(jobs)
    assert_complete(slow)


@pytest.fixture
def preempting(tmp_path: Path) -> Iterator[Slurm]:
    """A cluster whose partition `urgent` takes nodes from `gpu`."""
    partitions = (
        Partition("gpu", ("n1", "n2"), "PriorityTier=1"),
        Partition("urgent", ("n1", "n2"), "PriorityTier=9"),
    )
    options = ("PreemptType=preempt/partition_prio", "PreemptMode=CANCEL")
    yield from running(Slurm(tmp_path / "slurm", NODES, partitions, options=options))


def test_preemption(preempting: Slurm, tmp_path: Path) -> None:
    for project in cluster_project(preempting, tmp_path):
        project.script(SLOWLY)
        controller = project.start(*GEMM)
        project.running_job()
        urgent = ("--partition=urgent", "--gres=gpu:fake:1", "--output=/dev/null", "--wrap=sleep 2")
        for _ in NODES:
            preempting.command("sbatch", *urgent)
        assert controller.wait() == 0, controller.output
        assert "as PREEMPTED: another job took its place" in controller.output
        assert_complete(project)
