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
STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


@dataclass
class Stop:
    """Whether to end at the next case boundary (`reason` says why), and when to wait no longer for it."""

    wake_fd: int
    grace_s: float
    reason: str | None = None
    until: float | None = None
    terminations: int = 0

    @property
    def now(self) -> bool:
        return self.terminations > 1 or (self.until is not None and time.monotonic() > self.until)

    def note(self, number: int) -> None:
        self.reason = self.reason or signal.Signals(number).name
        self.until = self.until or time.monotonic() + self.grace_s
        self.terminations += number in (signal.SIGTERM, signal.SIGINT)

    def drain(self) -> None:
        with suppress(BlockingIOError):
            os.read(self.wake_fd, 4096)


@contextmanager
def listening(grace_s: float) -> Iterator[Stop]:
    """Notes stopping signals, and wakes on them and on the end of a child, while the block runs."""
    wake_fd, write_fd = os.pipe()
    os.set_blocking(wake_fd, False)
    os.set_blocking(write_fd, False)
    stop = Stop(wake_fd, grace_s)

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
