"""Everything a case may do to its worker, by name. A function that returns lets the case go on to its row."""

from __future__ import annotations

import ctypes
import errno
import getpass
import importlib
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from opatlas.measuring.errors import InvalidMeasurement, KernelLimit, Unsupported

ILLEGAL_ACCESS = "CUDA error: an illegal memory access was encountered"
FILL_LIMIT = 32 << 20


def fine(device: Any) -> None:
    pass


def raises(device: Any) -> NoReturn:
    raise RuntimeError("the kernel says no")


def wrapped_fatal(device: Any) -> NoReturn:
    try:
        raise RuntimeError(ILLEGAL_ACCESS)
    except RuntimeError as error:
        raise ValueError("something failed") from error


def out_of_memory(device: Any) -> NoReturn:
    raise MemoryError("no more memory")


def device_out_of_memory(device: Any) -> NoReturn:
    raise RuntimeError("CUDA error: out of memory")


def oom_beside_child(device: Any) -> None:
    """Has no memory while an earlier case of the same worker left a child that holds it."""
    if device.children:
        raise RuntimeError("CUDA error: out of memory")


def allocate(device: Any) -> NoReturn:
    held = []
    while True:
        held.append(bytearray(os.urandom(1 << 20) * 16))


def segfault(device: Any) -> None:
    ctypes.string_at(0)


def abort(device: Any) -> NoReturn:
    os.abort()


def exit_zero(device: Any) -> NoReturn:
    os._exit(0)


def system_exit(device: Any) -> NoReturn:
    sys.exit(0)


def interrupt(device: Any) -> NoReturn:
    raise KeyboardInterrupt


def sleep(device: Any) -> NoReturn:
    while True:
        time.sleep(1)


def sleep_holding_gil(device: Any) -> None:
    ctypes.PyDLL(None).sleep(1000)


def stop_itself(device: Any) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def print_megabytes(device: Any) -> None:
    for _ in range(20):
        print("x" * (1 << 20))
        print("y" * (1 << 20), file=sys.stderr)


def close_output(device: Any) -> None:
    sys.stdout.close()
    os.close(1)
    os.close(2)


def corrupt_output(device: Any) -> None:
    os.write(1, b'\n{"type":"row","case":"?"}\n\x00\xff' * 100)
    sys.stdout = None


def prefix_output(device: Any) -> None:
    class Prefixed:
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        def write(self, text: str) -> int:
            return self._stream.write(f"[rank0]: {text}")

        def __getattr__(self, name: str) -> Any:
            return getattr(self._stream, name)

    sys.stdout, sys.stderr = Prefixed(sys.stdout), Prefixed(sys.stderr)
    print("a line")
    raise Unsupported("the framework refuses this point")


def rubbish_in_protocol(device: Any) -> None:
    for fd in range(200, 220):
        try:
            os.write(fd, b"rubbish\n")
        except OSError:
            continue


def close_everything(device: Any) -> None:
    os.closerange(0, 65536)


def leave_child(device: Any) -> None:
    device.children.append(subprocess.Popen(["sleep", "1000"]))


def leave_daemon(device: Any) -> None:
    """A process in a session of its own, whose parent has ended."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execvp("sleep", ["sleep", "1000"])
        os._exit(0)
    os.wait()


def child_returns(device: Any) -> None:
    """A forked child that carries on as if it were the worker."""
    os.fork()


def die_beside_child(device: Any) -> NoReturn:
    """Dies while a child holds all its files open, the pipes of the protocol included."""
    sys.stdout.flush()
    if ctypes.CDLL(None).fork() == 0:
        while True:
            time.sleep(1)
    os._exit(3)


def poison(device: Any) -> NoReturn:
    """Breaks the device: this case and all later ones of the worker fail."""
    device.broken = RuntimeError(ILLEGAL_ACCESS)
    raise device.broken


def poison_silently(device: Any) -> None:
    """Breaks the device, which shows when the next case runs, or when the device is reset."""
    device.latent = RuntimeError(ILLEGAL_ACCESS)


def poison_late(device: Any) -> None:
    """Breaks the device, which shows before the next case begins."""
    device.late = RuntimeError(ILLEGAL_ACCESS)


def contended(device: Any) -> None:
    device.company = True


def foreign_module(device: Any) -> None:
    importlib.import_module("opatlas.backends.stub.unlisted")


def fill_disk(device: Any) -> NoReturn:
    with (Path(os.environ["TMPDIR"]) / "filler").open("wb") as file:
        for _ in range(FILL_LIMIT >> 20):
            file.write(bytes(1 << 20))
    raise OSError(errno.ENOSPC, "No space left on device")


def unsupported(device: Any) -> NoReturn:
    raise Unsupported("no such kernel")


def not_implemented(device: Any) -> NoReturn:
    raise NotImplementedError("not implemented for 'Float8_e4m3fn'")


def kernel_limit(device: Any) -> NoReturn:
    raise KernelLimit("3 x 5 = 15 > 14 (stub.py, LIMIT)")


def other_kernel(device: Any) -> None:
    """Runs a kernel that is not the one it asks for, see cases.py."""


def host_bound(device: Any) -> NoReturn:
    raise InvalidMeasurement("host_bound", "the launches take longer than the kernels")


def asks_for_user(device: Any) -> None:
    print(f"user {getpass.getuser()} at {Path.home()}")


def shows_environment(device: Any) -> None:
    print(f"core size={resource.getrlimit(resource.RLIMIT_CORE)}")
    for name, value in sorted(os.environ.items()):
        print(f"{name}={value}")


def by_name(name: str) -> Callable[[Any], None]:
    return globals()[name]
