"""What the harness asks of Linux: ties between processes, who is alive, how much memory there is."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
STACK_SIGNAL = signal.SIGUSR2
# Fields of /proc/<pid>/stat behind the name, and the columns of /proc/<pid>/statm.
STATE, PARENT, STARTED = 0, 1, 19
RESIDENT = 1


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


def descendants(root: int) -> list[int]:
    """All living processes below `root`, in whatever group or session."""
    children: dict[int, list[int]] = {}
    for pid, stat in _processes():
        if stat[STATE] not in "ZX":
            children.setdefault(int(stat[PARENT]), []).append(pid)
    found, queue = [], [root]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def _processes() -> Iterator[tuple[int, list[str]]]:
    for entry in PROC.iterdir():
        if entry.name.isdigit() and (stat := _stat(int(entry.name))):
            yield int(entry.name), stat


def _stat(pid: int) -> list[str] | None:
    """The fields behind the name, which itself may hold blanks and parentheses; None for no such process."""
    try:
        return (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None


def identity() -> str:
    """Names this process beyond its pid, which others get later: boot, pid namespace, pid, start."""
    stat = _stat(os.getpid())
    assert stat is not None
    return f"{_machine()}-{os.getpid()}-{stat[STARTED]}"


def is_dead(identity: str) -> bool:
    """Whether that process has ended; False also where this process is in no position to know."""
    machine, _, process = identity.partition("-")
    if machine != _machine():
        return False
    pid, _, started = process.partition("-")
    stat = _stat(int(pid)) if pid.isdigit() else None
    return stat is None or stat[STARTED] != started or stat[STATE] in "ZX"


def _machine() -> str:
    boot = (PROC / "sys/kernel/random/boot_id").read_text()[:8]
    return f"{boot}.{(PROC / 'self/ns/pid').stat().st_ino}"


def kill_leftovers(variable: str, wait_s: float = 5.0) -> list[int]:
    """Kills what workers of dead supervisors left running here; returns their pids.

    They are found by `variable`, which holds the identity of their supervisor, in their environment.
    """
    marker = f"{variable}=".encode()
    found = []
    for pid, _ in _processes():
        with suppress(OSError):
            for entry in (PROC / str(pid) / "environ").read_bytes().split(b"\0"):
                if entry.startswith(marker) and is_dead(entry[len(marker) :].decode(errors="replace")):
                    os.kill(pid, signal.SIGKILL)
                    found.append(pid)
    until = time.monotonic() + wait_s
    while any(_lives(pid) for pid in found) and time.monotonic() < until:
        time.sleep(0.01)
    return found


def _lives(pid: int) -> bool:
    stat = _stat(pid)
    return stat is not None and stat[STATE] not in "ZX"


def resident_bytes(pid: int) -> int:
    """Memory that a process holds; 0 for none such."""
    try:
        return int((PROC / str(pid) / "statm").read_text().split()[RESIDENT]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return 0


def available_bytes(cgroups: Path = Path("/sys/fs/cgroup")) -> int:
    """Memory that a job started now can take: of the machine, and by the control groups it is in."""
    fields = dict(line.split(":", 1) for line in (PROC / "meminfo").read_text().splitlines())
    bounds = [int(fields["MemAvailable"].split()[0]) * 1024]
    for line in (PROC / "self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        # Version 1 has a tree per controller, version 2 one for all.
        top, name = (cgroups / "memory", "memory.limit_in_bytes") if controllers else (cgroups, "memory.max")
        group = top / path.lstrip("/")
        for folder in (group, *group.parents):
            with suppress(OSError, ValueError):
                bounds.append(int((folder / name).read_text()))
    return min(bounds)
