"""One run per working tree: a lock file made by exclusive creation.

Not flock: on shared file systems it may succeed for every caller. The file says who holds it, so that
a lock left by a dead process on this machine is recognised and taken over.
"""

from __future__ import annotations

import getpass
import json
import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path

from opatlas.errors import UserError

NAME = ".lock"


@dataclass(frozen=True)
class Holder:
    """A process, told apart from later ones with the same pid by boot and start time."""

    host: str
    pid: int
    boot_id: str
    started: str
    user: str

    @classmethod
    def this_process(cls) -> Holder:
        return cls(socket.gethostname(), os.getpid(), _boot_id(), _start_time(os.getpid()), _user())

    @property
    def is_here(self) -> bool:
        """Whether it is (or was) a process of this machine, so that we can tell if it lives."""
        return self.host == socket.gethostname()

    @property
    def is_dead(self) -> bool:
        """Whether it is known to be gone; False where that cannot be told from here."""
        if not self.is_here:
            return False
        return self.boot_id != _boot_id() or _start_time(self.pid) != self.started

    def __str__(self) -> str:
        return f"process {self.pid} of {self.user} on {self.host}"


class Lock:
    def __init__(self, path: Path, holder: Holder) -> None:
        self._path = path
        self._holder = holder

    def release(self) -> None:
        """Gives the lock back; a lock that is not ours any more is left alone."""
        if os.getpid() == self._holder.pid and read(self._path.parent) == self._holder:
            self._path.unlink(missing_ok=True)


def take(folder: Path) -> Lock:
    """Takes the lock of a results folder.

    UserError names the holder while another run has it. A lock whose holder is dead is removed first.
    """
    path = folder / NAME
    me = Holder.this_process()
    content = json.dumps(asdict(me)).encode() + b"\n"
    for _ in range(2):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _create(path, content)
            return Lock(path, me)
        except FileExistsError:
            holder = read(folder)
            if holder is None or not holder.is_dead:
                raise UserError(_refusal(path, holder)) from None
            path.unlink(missing_ok=True)
        except OSError as error:
            raise UserError(f"{path}: cannot take the lock: {error.strerror}") from None
    raise UserError(f"{path}: another run has just taken the lock")


def read(folder: Path) -> Holder | None:
    """Who holds the lock; None when nobody does or the file says nothing."""
    try:
        return Holder(**json.loads((folder / NAME).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _create(path: Path, content: bytes) -> None:
    """Exclusive creation with the content in place: a link is atomic, also on NFS."""
    temporary = path.with_name(f"{NAME}.{socket.gethostname()}.{os.getpid()}")
    temporary.write_bytes(content)
    try:
        os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _refusal(path: Path, holder: Holder | None) -> str:
    if holder is None:
        return f"{path}: is not readable as a lock; remove it if no run uses this folder"
    if holder.is_here:
        return f"{path}: {holder} is running in this working tree; wait for it, or stop it"
    return (
        f"{path}: {holder} holds the lock, and whether it lives cannot be told from here; "
        "when it is gone, remove the file"
    )


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _start_time(pid: int) -> str:
    """Clock ticks between boot and the start of a process; empty when there is none of this pid."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[19]


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"
