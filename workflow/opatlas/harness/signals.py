"""The signals that end an attempt, and the pipe that wakes a waiting supervisor when one arrives."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

# SLURM warns by SIGUSR1 or SIGUSR2 (sbatch --signal) and ends by SIGTERM.
WARNINGS = (signal.SIGUSR1, signal.SIGUSR2)
STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


# One end of a job may arrive twice: from SLURM and from the container's runtime.
SAME_S = 0.05


@dataclass
class Stop:
    """Whether to end at the next case boundary (`reason` says why), and when to wait no longer for it.

    `ends` is when the job's time is over, in seconds since 1970: a warning of it leaves time until then.
    """

    wake_fd: int
    grace_s: float
    ends: float | None = None
    reason: str | None = None
    until: float | None = None
    terminations: int = 0
    terminated: float = -SAME_S

    @property
    def now(self) -> bool:
        return self.terminations > 1 or (self.until is not None and time.monotonic() > self.until)

    def note(self, number: int) -> None:
        now = time.monotonic()
        wait = self.grace_s
        if number in WARNINGS and self.ends is not None:
            wait = max(wait, self.ends - time.time() - self.grace_s)
        self.reason = self.reason or signal.Signals(number).name
        self.until = min(self.until or now + wait, now + wait)
        if number in (signal.SIGTERM, signal.SIGINT) and now - self.terminated >= SAME_S:
            self.terminations += 1
            self.terminated = now

    def drain(self) -> None:
        with suppress(BlockingIOError):
            os.read(self.wake_fd, 4096)


@contextmanager
def listening(grace_s: float, ends: float | None = None) -> Iterator[Stop]:
    """Notes stopping signals, and wakes on them and on the end of a child, while the block runs."""
    wake_fd, write_fd = os.pipe()
    os.set_blocking(wake_fd, False)
    os.set_blocking(write_fd, False)
    stop = Stop(wake_fd, grace_s, ends)

    def handle(number: int, frame: FrameType | None) -> None:
        if number != signal.SIGCHLD:
            stop.note(number)

    before = {number: signal.signal(number, handle) for number in (*STOPPING, signal.SIGCHLD)}
    wakeup = signal.set_wakeup_fd(write_fd, warn_on_full_buffer=False)
    try:
        yield stop
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(wake_fd)
        os.close(write_fd)
