"""Processes, their identity and their memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from opatlas.harness import linux

WITH_OPATLAS = {**os.environ, "PYTHONPATH": str(Path(linux.__file__).parents[2])}


def test_descendants_in_whatever_session():
    code = (
        "import subprocess; print(subprocess.Popen(['sleep', '100'], start_new_session=True).pid, flush=True)"
    )
    code += "; input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        grandchild = int(child.stdout.readline())
        found = linux.descendants(os.getpid())
        assert {child.pid, grandchild} <= set(found)
        os.kill(grandchild, 9)
        child.communicate("\n")


def test_identity_tells_the_living_from_the_dead():
    own = linux.identity()
    assert not linux.is_dead(own)
    machine, pid, started = own.rsplit("-", 2)
    assert linux.is_dead(f"{machine}-{pid}-{int(started) + 1}")
    assert linux.is_dead(f"{machine}-4194999-1")
    assert not linux.is_dead(f"elsewhere-{pid}-{started}")


def test_leftovers_are_found_by_their_environment():
    machine = linux.identity().rsplit("-", 2)[0]
    marks = {"dead": f"{machine}-4194999-1", "alive": linux.identity()}
    children = {
        name: subprocess.Popen(["sleep", "100"], env={"OPATLAS_TEST_MARK": mark})
        for name, mark in marks.items()
    }
    assert linux.kill_leftovers("OPATLAS_TEST_MARK") == [children["dead"].pid]
    assert children["dead"].wait(5) == -9
    assert children["alive"].poll() is None
    children["alive"].kill()
    children["alive"].wait()


def test_a_worker_whose_supervisor_is_gone_before_the_signal_is_armed_ends():
    code = "from opatlas.harness import linux; linux.die_with(4194999); print('lives')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        env=WITH_OPATLAS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, b"")


def test_a_child_dies_with_its_parent():
    child = "from opatlas.harness import linux; import os, time; linux.die_with(os.getppid()); "
    child += "print(os.getpid(), flush=True); time.sleep(100)"
    parent = (
        f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}]); time.sleep(100)"
    )
    process = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, env=WITH_OPATLAS)
    pid = int(process.stdout.readline())
    process.kill()
    process.wait()
    until = time.monotonic() + 5
    while linux._lives(pid):
        assert time.monotonic() < until
        time.sleep(0.01)
    process.stdout.close()


def test_memory_of_a_process():
    assert linux.resident_bytes(os.getpid()) > 1 << 20
    assert linux.resident_bytes(4194999) == 0


def test_available_memory_is_bound_by_the_control_groups(tmp_path, monkeypatch):
    proc = tmp_path / "proc"
    (proc / "self").mkdir(parents=True)
    (proc / "meminfo").write_text("MemTotal: 4000 kB\nMemAvailable: 3000 kB\n")
    monkeypatch.setattr(linux, "PROC", proc)
    groups = tmp_path / "cgroup"
    (groups / "job/step").mkdir(parents=True)
    (proc / "self/cgroup").write_text("0::/job/step\n")
    (groups / "job/step/memory.max").write_text("max\n")
    assert linux.available_bytes(groups) == 3000 * 1024
    (groups / "job/memory.max").write_text("100000\n")
    assert linux.available_bytes(groups) == 100_000
    (proc / "self/cgroup").write_text("4:cpu,memory:/job\n")
    (groups / "memory/job").mkdir(parents=True)
    (groups / "memory/job/memory.limit_in_bytes").write_text("70000\n")
    assert linux.available_bytes(groups) == 70_000
