"""What supervisor and worker say to each other: one JSON object a line, over two pipes of their own.

Nothing that a framework prints can reach these pipes. Supervisor to worker: `start` (once), `case`, `stop`.
Worker to supervisor: `ready` or `refused`, then for each case `heartbeat` at the start of each phase and
exactly one `row` or `failure`; `refused` may also take the place of an outcome, and ends the attempt.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

VERSION = 1
CHUNK = 1 << 16

Message = dict[str, Any]


class ProtocolError(Exception):
    """The other side said something that is no message."""


class Closed(Exception):
    """The other side is gone."""


class Channel:
    """One end of the conversation. Bytes of an unfinished line wait until its rest arrives."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self.read_fd = read_fd
        self._write_fd = write_fd
        self._partial = b""
        self._messages: list[Message] = []

    def send(self, kind: str, **fields: Any) -> None:
        line = encode({"type": kind, **fields})
        try:
            while line:
                line = line[os.write(self._write_fd, line) :]
        except OSError as error:
            raise Closed(str(error)) from None

    def receive(self) -> Message:
        """The next message; waits for it. Closed at the end of the stream, ProtocolError on rubbish."""
        while not self._messages:
            self._read()
        return self._messages.pop(0)

    def poll(self) -> Message | None:
        """The next message if there is one already; needs a non-blocking `read_fd`."""
        if not self._messages:
            try:
                self._read()
            except BlockingIOError:
                return None
        return self._messages.pop(0) if self._messages else None

    def close(self) -> None:
        for fd in (self.read_fd, self._write_fd):
            with suppress(OSError):
                os.close(fd)
        self.read_fd = self._write_fd = -1

    def _read(self) -> None:
        chunk = os.read(self.read_fd, CHUNK)
        if not chunk:
            raise Closed("end of stream")
        *lines, self._partial = (self._partial + chunk).split(b"\n")
        self._messages += map(decode, lines)


def encode(message: Mapping[str, Any]) -> bytes:
    """One line. ValueError where a value is not finite, TypeError where JSON has no word for it."""
    return json.dumps(message, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> Message:
    try:
        message = json.loads(line)
    except ValueError:
        message = None
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise ProtocolError(f"not a message: {line[:200]!r}")
    return message
