"""One run per working tree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from opatlas import lock
from opatlas.errors import UserError
from opatlas.lock import Holder


def write(folder: Path, holder: Holder) -> None:
    (folder / lock.NAME).write_text(json.dumps(asdict(holder)), encoding="utf-8")


def test_a_lock_is_taken_and_given_back(tmp_path: Path) -> None:
    taken = lock.take(tmp_path)
    assert lock.read(tmp_path) == Holder.this_process()
    taken.release()
    assert lock.read(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_a_second_run_is_told_who_holds_it(tmp_path: Path) -> None:
    lock.take(tmp_path)
    with pytest.raises(UserError, match=f"process {os.getpid()} .* is running"):
        lock.take(tmp_path)


def test_a_dead_holder_is_taken_over(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    write(tmp_path, replace(Holder.this_process(), pid=child.pid, started="1"))
    lock.take(tmp_path)
    assert lock.read(tmp_path) == Holder.this_process()


def test_a_recycled_pid_and_an_older_boot_are_dead(tmp_path: Path) -> None:
    me = Holder.this_process()
    assert not me.is_dead
    assert replace(me, started="1").is_dead
    assert replace(me, boot_id="before").is_dead


def test_a_holder_elsewhere_is_never_taken_for_dead(tmp_path: Path) -> None:
    write(tmp_path, replace(Holder.this_process(), host="elsewhere", boot_id="x"))
    with pytest.raises(UserError, match="elsewhere holds the lock"):
        lock.take(tmp_path)


def test_an_unreadable_lock_is_named(tmp_path: Path) -> None:
    (tmp_path / lock.NAME).write_text("?", encoding="utf-8")
    with pytest.raises(UserError, match="not readable as a lock"):
        lock.take(tmp_path)


def test_a_lock_that_is_not_ours_any_more_is_left_alone(tmp_path: Path) -> None:
    taken = lock.take(tmp_path)
    write(tmp_path, replace(Holder.this_process(), host="elsewhere"))
    taken.release()
    assert (tmp_path / lock.NAME).exists()
