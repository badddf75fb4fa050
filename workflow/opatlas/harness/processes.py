"""Starting a worker and getting rid of it, with everything that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from opatlas.harness.failures import TEXT_LIMIT, clip
from opatlas.harness.linux import STACK_SIGNAL, descendants
from opatlas.harness.protocol import Channel

STACK_WAIT_S = 2.0
GONE_WAIT_S = 30.0


class Unkillable(Exception):
    """A process that outlives SIGKILL, as one stuck in a driver does: this node can't go on."""


@dataclass
class Worker:
    """A running worker as its supervisor sees it."""

    process: subprocess.Popen[bytes]
    channel: Channel
    stack_file: Path

    def dump_stack(self) -> str | None:
        """The Python stacks of all its threads; None where it can't say."""
        self.process.send_signal(STACK_SIGNAL)
        until = time.monotonic() + STACK_WAIT_S
        text = None
        while time.monotonic() < until:
            before, text = text, self.stack()
            if text and text == before:
                break
            time.sleep(0.1)
        return text

    def stack(self) -> str | None:
        """What it has written of its stack so far, asked to or as it crashed."""
        try:
            return clip(self.stack_file.read_text(errors="replace"), TEXT_LIMIT) or None
        except OSError:
            return None

    def ending(self, wait_s: float = 0.0) -> str | None:
        """How it ended, in words; None while it runs."""
        try:
            code = self.process.wait(wait_s) if wait_s else self.process.poll()
        except subprocess.TimeoutExpired:
            code = None
        if code is None:
            return None
        return f"exit {code}" if code >= 0 else f"signal {_signal_name(-code)}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def start(environment: Mapping[str, str], folder: Path, log_fd: int) -> Worker:
    """Starts a worker in a session of its own, in its home; `folder` takes the stack that it may write."""
    to_worker_read, to_worker_write = os.pipe()
    to_us_read, to_us_write = os.pipe()
    os.set_blocking(to_us_read, False)
    stack_file = folder / "stack.txt"
    stack_file.unlink(missing_ok=True)
    command = [sys.executable, "-s", "-m", "opatlas.harness.worker"]
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
