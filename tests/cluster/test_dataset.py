"""A dataset measured by SLURM jobs."""

from __future__ import annotations

import json
from collections import Counter

from conftest import ClusterProject
from opatlas.shards import file


def test_each_shard_is_one_job_with_a_gpu_and_each_row_names_it(project: ClusterProject) -> None:
    run = project.submit()
    assert run.returncode == 0, run.output
    rows = {path: file.read(path).rows.to_pylist() for path in project.shards()}
    jobs = [{row["job_id"] for row in shard} for shard in rows.values()]
    assert {len(ids) for ids in jobs} == {1}
    assert len(set().union(*jobs)) == len(rows)
    assert all(row["node"] for shard in rows.values() for row in shard)
    assert project.measured() == sum(map(len, rows.values()))
    # Only measuring went to SLURM, and the queue is left as it was found.
    assert run.jobs["measure_shard"] == len(jobs)
    assert project.cluster.squeue() == []

    again = project.submit()
    assert again.returncode == 0, again.output
    assert again.jobs == {}


def test_what_slurm_is_asked_for_and_told(project: ClusterProject) -> None:
    project.script('{"seconds": 0.2}')
    project.edit("config/platforms.yaml", "mem_mb: 1024}", "mem_mb: 2048, max_minutes: 12}")
    controller = project.start("--config", "subset=one", "ops=moe")
    job = project.running_job()
    shown = dict(word.partition("=")[::2] for word in project.cluster.scontrol_job(job).split())
    assert shown["JobName"].startswith("opatlas")
    assert shown["Partition"] == "gpu"
    assert shown["TimeLimit"] == "00:12:00"
    assert shown["Requeue"] == "0"
    assert "gres:gpu:fake:1" in shown["TresPerNode"]
    assert shown["MinMemoryNode"] == "2G"
    assert shown["Comment"] == "opatlas"
    ticket = next(project.path("results/attempts").rglob("*.ticket.json"))
    comment = project.cluster.squeue("%k")[0]
    assert comment.startswith(f"opatlas moe {ticket.parent.name} of stub/1.0.0/cpu results/attempts/")
    assert controller.wait() == 0, controller.output


def test_a_controller_inside_a_job_submits_the_same_jobs(project: ClusterProject) -> None:
    inside = {
        "SLURM_JOB_ID": "77",
        "SLURM_PROCID": "3",
        "SBATCH_PARTITION": "nowhere",
        "SLURM_MEM_PER_NODE": "1",
    }
    run = project.submit("--config", "subset=one", "ops=moe", **inside)
    assert run.returncode == 0, run.output
    assert run.jobs["measure_shard"] == 1


def test_the_journal_knows_when_the_job_s_time_is_over(project: ClusterProject) -> None:
    run = project.submit("--config", "subset=one", "ops=moe")
    assert run.returncode == 0, run.output
    attempts = [json.loads(line.partition(" ")[2]) for line in project.records("attempt")]
    assert Counter("OPATLAS_JOB_END" in attempt["environment"] for attempt in attempts) == {True: 1}
