"""What runs first in a job: refusals, the environment it hands on, and signals that it passes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from opatlas.cluster import job

# Stands where the supervisor stands: below a shell, and with a handler of its own for the warning.
CHILD = """
import pathlib, signal, sys, time
def note(number, frame):
    pathlib.Path("noted").write_text(signal.Signals(number).name)
    sys.exit(75)
signal.signal(signal.SIGUSR1, note)
signal.signal(signal.SIGTERM, note)
pathlib.Path("ready").touch()
time.sleep(60)
"""


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, job.__file__, *arguments]
    return subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_second_task_of_a_job_measures_nothing(tmp_path: Path) -> None:
    done = run("1", "15", f"touch {tmp_path}/ran", SLURM_PROCID="1", SLURM_JOB_ID="7")
    assert done.returncode == 1
    assert done.stderr.startswith("opatlas: duplicate task 1 of job 7")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(("visible", "refused"), [("0", False), ("0,1", True), ("", True)])
def test_a_job_with_other_gpus_than_it_asked_for_is_refused(visible: str, refused: bool) -> None:
    done = run("1", "15", "true", CUDA_VISIBLE_DEVICES=visible)
    assert (done.returncode != 0) is refused
    assert ("gres" in done.stderr) is refused


def test_a_container_gets_the_job_its_gpus_and_the_end_of_its_time() -> None:
    done = run("1", "15", "env", SLURM_JOB_ID="7", CUDA_VISIBLE_DEVICES="3", SECRET="x")
    lines = dict(line.partition("=")[::2] for line in done.stdout.splitlines())
    assert lines["APPTAINERENV_SLURM_JOB_ID"] == "7"
    assert lines["APPTAINERENV_CUDA_VISIBLE_DEVICES"] == "3"
    assert abs(float(lines["APPTAINERENV_OPATLAS_JOB_END"]) - time.time() - 900) < 60
    assert "APPTAINERENV_SECRET" not in lines


def test_slurm_s_own_end_of_the_job_counts_where_it_is_told() -> None:
    assert "OPATLAS_JOB_END=1800000000" in run("1", "15", "env", SLURM_JOB_END_TIME="1800000000").stdout


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM])
def test_a_signal_reaches_the_last_process_and_ends_no_other(tmp_path: Path, number: int) -> None:
    """The warning is sent to the first process of the job, the end of the job to every one."""
    (tmp_path / "child.py").write_text(CHILD)
    command = f"{sys.executable} child.py; echo ended $? > code; exit 3"
    process = subprocess.Popen(
        [sys.executable, job.__file__, "0", "15", command], cwd=tmp_path, start_new_session=True
    )
    deadline = time.monotonic() + 30
    while not (tmp_path / "ready").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    if number == signal.SIGTERM:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    assert process.wait(timeout=30) == 3
    assert (tmp_path / "noted").read_text() == signal.Signals(number).name
    assert (tmp_path / "code").read_text() == "ended 75\n"
