"""Starting a worker and getting rid of it, with everything that it started."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from opatlas.harness.environment import python
from opatlas.harness.protocol import Channel

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
STACK_SIGNAL = signal.SIGUSR2
STACK_WAIT_S = 2.0
GONE_WAIT_S = 30.0


class Unkillable(Exception):
    """A process that outlives SIGKILL, as one stuck in a driver does: this node can't go on."""


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def adopt_orphans() -> None:
    """Makes this process the parent of whatever its descendants leave behind, so that it can be found."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def die_with(parent: int) -> None:
    """Ends this process when `parent` dies, or at once if it is dead already."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # Only now: a parent that died before the signal was armed sends none.
    if os.getppid() != parent:
        os._exit(1)


def no_core_dumps() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@dataclass
class Worker:
    """A running worker as its supervisor sees it."""

    process: subprocess.Popen[bytes]
    channel: Channel
    stack_file: Path

    def dump_stack(self) -> str | None:
        """The Python stacks of all its threads; None where it can't say."""
        before = self.stack()
        try:
            self.process.send_signal(STACK_SIGNAL)
        except OSError:
            return before
        until = time.monotonic() + STACK_WAIT_S
        while time.monotonic() < until:
            time.sleep(0.05)
            if (now := self.stack()) and now != before and now.endswith("\n"):
                break
        return self.stack()

    def stack(self) -> str | None:
        try:
            return self.stack_file.read_text(errors="replace") or None
        except OSError:
            return None

    def ending(self, wait_s: float = 0.0) -> str | None:
        """How it ended, in words; None while it runs."""
        try:
            code = self.process.wait(wait_s)
        except subprocess.TimeoutExpired:
            return None
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit {code}"


def start(environment: Mapping[str, str], folder: Path, log_fd: int) -> Worker:
    """Starts a worker in a session of its own, in an empty working directory."""
    to_worker_read, to_worker_write = os.pipe()
    to_us_read, to_us_write = os.pipe()
    os.set_blocking(to_us_read, False)
    stack_file = folder / "stack.txt"
    stack_file.unlink(missing_ok=True)
    command = [*python(), "-m", "opatlas.harness.worker"]
    command += [str(to_worker_read), str(to_us_write), str(os.getpid()), str(stack_file)]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log_fd,
            stderr=log_fd,
            cwd=environment["HOME"],
            env=dict(environment),
            start_new_session=True,
            pass_fds=(to_worker_read, to_us_write),
        )
    finally:
        os.close(to_worker_read)
        os.close(to_us_write)
    return Worker(process, Channel(to_us_read, to_worker_write), stack_file)


def end(worker: Worker) -> None:
    """Kills the worker and every process that it left, and waits until they are gone; Unkillable if not."""
    worker.channel.close()
    if worker.process.poll() is None:
        _kill(os.killpg, worker.process.pid)
    until = time.monotonic() + GONE_WAIT_S
    while True:
        rest = descendants(os.getpid())
        for pid in rest:
            _kill(os.kill, pid)
        if worker.process.poll() is not None:
            _reap()
            if not rest:
                return
        if time.monotonic() > until:
            raise Unkillable(f"process {rest or worker.process.pid} of a worker does not end on SIGKILL")
        time.sleep(0.002)


def _kill(how: Callable[[int, int], None], pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        how(pid, signal.SIGKILL)


def _reap() -> None:
    """Takes note of the orphans that have ended; the worker's own end is taken note of before."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def descendants(root: int) -> list[int]:
    """All living processes below `root`, in whatever group or session."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            state, parent = stat.rpartition(")")[2].split()[:2]
            if state not in "ZX":
                children.setdefault(int(parent), []).append(int(entry.name))
    found, queue = [], [root]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found
