"""The log of an attempt: what its workers print, kept below a limit."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from opatlas.harness.journal import NEW_FILE

LIMIT = 64 << 20
KEPT = 32 << 20


class Log:
    """An append-only file whose descriptor the workers have as their standard output and error."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fd = os.open(path, NEW_FILE, 0o644)

    def note(self, text: str) -> None:
        """A line of ours, marked as such."""
        with suppress(OSError):
            os.write(self.fd, f"[opatlas] {text}\n".encode(errors="replace"))

    def tick(self) -> None:
        """Cuts a log that grew too long; what is printed afterwards is appended again."""
        if os.fstat(self.fd).st_size > LIMIT:
            os.ftruncate(self.fd, KEPT)
            self.note("more was printed here; the log is cut")

    def close(self) -> None:
        os.close(self.fd)
