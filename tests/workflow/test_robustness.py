"""Damaged files, dead controllers, odd clocks: nothing lost, nothing doubled, one clear word each."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.project import STUB, TARGET, Project


@pytest.mark.parametrize("keep", ["all but a byte", "half", "nothing"])
def test_a_truncated_shard_is_the_one_that_is_made_again(published: Project, keep: str) -> None:
    victim = published.shards()[1]
    whole = victim.read_bytes()
    victim.write_bytes(
        whole[: {"all but a byte": len(whole) - 1, "half": len(whole) // 2, "nothing": 0}[keep]]
    )
    planned = published.dry_run()
    assert planned.jobs == {"quarantine_shard": 1, "assemble_shard": 1}
    assert str(victim.relative_to(published.root)) in planned.output
    published.make()
    assert victim.read_bytes() == whole
    assert published.dry_run().jobs == {}


def test_a_flipped_byte_is_found_by_the_audit_and_only_that_shard_is_made_again(published: Project) -> None:
    victim = published.shards()[0]
    whole = bytearray(victim.read_bytes())
    whole[len(whole) // 3] ^= 0xFF
    victim.write_bytes(bytes(whole))
    audit = published.snakemake(f"{TARGET}.audit.json")
    assert audit.returncode != 0
    assert victim.name in audit.output
    published.make(TARGET)
    again = published.snakemake(f"{TARGET}.audit.json")
    assert again.returncode == 0, again.output


def test_an_audit_runs_at_every_ask(published: Project) -> None:
    for _ in range(2):
        run = published.snakemake(f"{TARGET}.audit.json")
        assert run.returncode == 0, run.output
        assert any("audit" in line for line in run.output.splitlines())


def test_shards_from_the_future_are_merged_and_nothing_is_deleted(published: Project) -> None:
    shards = published.shards()
    future = time.time() + 3600
    for path in shards:
        os.utime(path, (future, future))
    published.path(TARGET).unlink()
    shutil.rmtree(published.path("results/tables"))
    run = published.make()
    assert set(run.jobs) == {"merge_tables", "publish_dataset"}
    assert published.shards() == shards


def test_a_failed_publish_leaves_the_older_dataset(published: Project) -> None:
    before = published.path(TARGET).readlink()
    published.append("workflow/opatlas/checks/run.py", "\nEDITED = True\n")
    rule, command = "workflow/rules/publish.smk", '"python -m opatlas publish'
    published.edit(rule, command, command.replace('"', '"false; '))
    failed = published.snakemake("--keep-incomplete", TARGET)
    assert failed.returncode != 0
    assert published.path(TARGET).readlink() == before
    published.edit(rule, "false; ", "")
    published.make()
    assert published.path(TARGET).readlink() != before
    assert published.path(f"{TARGET}/provenance.json").exists()


def test_a_failed_rule_with_keep_incomplete_is_not_complete_next_time(fresh: Project) -> None:
    """The job of a shard fails after it has made empty files of the right names, and they are kept."""
    rules = "workflow/rules/measure.smk"
    fresh.edit(rules, '"python -m opatlas assemble', '"touch {output}; false; python -m opatlas assemble')
    failed = fresh.snakemake("--keep-incomplete", TARGET)
    assert failed.returncode != 0
    shard = fresh.shards()[0]
    assert shard.read_bytes() == b""
    measured = fresh.measured()
    fresh.edit(rules, "touch {output}; false; ", "")
    fresh.make()
    assert shard.read_bytes() != b""
    assert fresh.measured() >= measured
    assert fresh.dry_run().jobs == {}


def test_a_job_that_claims_success_without_rows_is_not_believed(fresh: Project) -> None:
    """As when a batch system reports success of a job that did nothing: the next run measures."""
    rules, command = "workflow/rules/measure.smk", '"python3 -m opatlas.harness.supervisor"'
    fresh.edit(rules, command, '"touch {output}; true; : " ' + command)
    failed = fresh.snakemake(TARGET)
    assert failed.returncode != 0
    assert "neither row nor failure" in failed.output
    assert not fresh.path(TARGET).exists()
    fresh.edit(rules, '"touch {output}; true; : " ', "")
    fresh.make()
    assert fresh.dry_run().jobs == {}


def test_a_lost_journal_is_measured_again_though_its_receipt_is_there(published: Project) -> None:
    victim = published.shards()[0]
    name = victim.relative_to(published.path("results/shards")).with_suffix("")
    for journal in (published.path("results/attempts") / name).glob("*.journal"):
        journal.unlink()
    victim.unlink()
    assert published.make().jobs == {"queue_shards": 1, "measure_shard": 1, "assemble_shard": 1}
    assert published.dry_run().jobs == {}


def test_a_run_that_was_killed_while_it_wrote_tickets_is_gone_on_with(published: Project) -> None:
    """Snakemake marks what a killed job may have left; the file is whole, and nothing behind it is done."""
    victim = published.shards()[0]
    name = victim.relative_to(published.path("results/shards")).with_suffix("")

    def lose() -> None:
        for pattern in ("*.journal", "*.done.json"):
            for path in (published.path("results/attempts") / name).glob(pattern):
                path.unlink()
        victim.unlink()

    lose()
    published.make()
    lose()
    queues = [path.relative_to(published.root) for path in published.path("results/queues").rglob("*.json")]
    for path in queues:
        mark = base64.urlsafe_b64encode(str(path).encode()).decode()
        published.path(f".snakemake/incomplete/{mark}").write_text("{}")
    assert published.make().jobs == {"measure_shard": 1, "assemble_shard": 1}
    assert victim.exists()
    assert published.dry_run().jobs == {}


def test_a_dataset_without_a_runner_is_refused(fresh: Project) -> None:
    run = fresh.snakemake("results/trtllm/1.3.0rc20/sm90")
    assert run.returncode != 0
    assert "it can be planned (-n), not measured" in run.output
    assert not list(fresh.path("results").rglob("provenance.json"))


def test_metadata_that_cannot_be_written_is_said_before_anything_runs(fresh: Project) -> None:
    fresh.path(".snakemake").write_text("a file where a folder should be", encoding="utf-8")
    run = fresh.snakemake(TARGET)
    assert run.returncode != 0
    assert fresh.measured() == 0


def start(project: Project, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "snakemake", *arguments],
        cwd=project.root,
        env=project.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def wait_for(path: Path, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < until, f"{path} did not appear"
        time.sleep(0.05)


def test_a_killed_run_leaves_a_lock_that_status_explains_and_the_next_run_takes_over(fresh: Project) -> None:
    running = start(fresh, TARGET)
    wait_for(fresh.path("results/.lock"))
    second = fresh.snakemake(TARGET)
    assert second.returncode != 0
    assert f"process {running.pid}" in second.output
    assert "is running in this working tree" in second.output
    assert f"process {running.pid}" in fresh.opatlas("status").stdout
    wait_for(fresh.path("results/queues"))
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    status = fresh.opatlas("status").stdout
    assert f"process {running.pid}" in status
    assert "dead" in status
    fresh.make()
    assert fresh.path(f"{TARGET}/provenance.json").exists()
    assert not fresh.path("results/.lock").exists()
    assert fresh.dry_run().jobs == {}


def test_a_lock_of_another_machine_is_not_taken_over(fresh: Project) -> None:
    fresh.path("results").mkdir()
    holder = {"host": "elsewhere", "pid": 1, "boot_id": "x", "started": "1", "user": "somebody"}
    fresh.path("results/.lock").write_text(json.dumps(holder), encoding="utf-8")
    run = fresh.snakemake(TARGET)
    assert run.returncode != 0
    assert "process 1 of somebody on elsewhere" in run.output
    assert fresh.measured() == 0


def test_foreign_files_beside_shards_are_ignored(published: Project) -> None:
    """A file of another backend's shard lies in the folder: it is no part of the merge."""
    victim = published.shards()[0]
    foreign = victim.with_name("staging.txt")
    foreign.write_text("gemm,20,2.5\n", encoding="utf-8")
    (victim.parent / "sglang.parquet").write_bytes(victim.read_bytes())
    published.append("workflow/opatlas/checks/run.py", "\nEDITED = True\n")
    published.make()
    rows = json.loads(published.path(f"{TARGET}/checks.json").read_text(encoding="utf-8"))
    assert rows


def test_a_rebuild_gives_the_same_bytes(published: Project) -> None:
    def digests() -> dict[str, str]:
        folder = published.path(TARGET).resolve()
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}

    before = digests()
    for folder in ("results/.datasets", "results/tables", "results/shards", ".snakemake"):
        shutil.rmtree(published.path(folder))
    published.path(TARGET).unlink()
    published.make()
    assert digests() == before


def test_a_row_is_traced_to_the_job_that_measured_it(published: Project) -> None:
    run = published.opatlas(
        "trace", f"{TARGET}/gemm_perf.parquet", "gemm_dtype=bfloat16", "m=8", "n=640", "k=320"
    )
    assert run.returncode == 0, run.output
    for words in ("attempt-", ".log", "shard", STUB):
        assert words in run.stdout
