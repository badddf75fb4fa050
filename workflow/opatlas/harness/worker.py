"""The worker: runs cases of one backend on one device, one at a time, as its supervisor asks.

`python -m opatlas.harness.worker READ_FD WRITE_FD SUPERVISOR_PID STACK_FILE`, started by the supervisor only.
"""

from __future__ import annotations

import faulthandler
import fcntl
import gc
import importlib
import math
import os
import platform
import signal
import sys
import traceback
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from opatlas.harness import classify, proofs
from opatlas.harness.failures import (
    AFTER,
    BEFORE,
    BUILD,
    CUDA_FATAL,
    MEASURE,
    OUT_OF_MEMORY,
    UNEXPECTED,
    Failure,
)
from opatlas.harness.linux import STACK_SIGNAL, die_with
from opatlas.harness.protocol import VERSION, Channel, Closed, Message, encode
from opatlas.harness.ticket import Ticket, load
from opatlas.measuring.measurement import Measurement
from opatlas.measuring.settings import Settings
from opatlas.ops.ids import parse_id

# Files that a framework opens get low numbers, and some close what they find there.
HIGH_FD = 200


def main(arguments: list[str]) -> None:
    read_fd, write_fd, supervisor = map(int, arguments[:3])
    die_with(supervisor)
    streams = _high(os.dup(1))
    channel = Channel(_high(read_fd), _high(write_fd))
    os.register_at_fork(after_in_child=channel.close)
    _survive_signals(Path(arguments[3]))
    try:
        _serve(channel, streams)
    except proofs.Refused as refused:
        channel.send("refused", message=str(refused))
    except Closed:
        pass
    _flush()
    # Without the interpreter's and the framework's own teardown, which may hang.
    os._exit(0)


def _high(fd: int) -> int:
    high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH_FD)
    os.close(fd)
    return high


def _survive_signals(stack_file: Path) -> None:
    """Leaves signals that are sent to the whole job to the supervisor; the stack goes to `stack_file`."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, lambda *_: None)
    stacks = _high(os.open(stack_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    faulthandler.enable(stacks)
    faulthandler.register(STACK_SIGNAL, stacks)


def _serve(channel: Channel, streams: int) -> None:
    start = channel.receive()
    if start["protocol"] != VERSION:
        raise proofs.Refused(f"the supervisor speaks protocol {start['protocol']}, this worker {VERSION}")
    try:
        cases = _open(load(Path(start["ticket"])), channel)
    except (proofs.Refused, Closed):
        raise
    except Exception as error:
        traceback.print_exc()
        what = (str(error).splitlines() or [""])[0]
        raise proofs.Refused(f"the worker cannot start: {type(error).__name__}: {what}") from None
    # What start-up left behind stays anyway; going through it at every build would take tens of ms.
    gc.collect()
    gc.freeze()
    while (message := channel.receive())["type"] == "case":
        _restore(streams)
        channel.send(**cases.outcome(message))
        _flush()


def _open(ticket: Ticket, channel: Channel) -> Cases:
    """Proves that this is the right place and says so, or raises Refused."""
    known = frozenset(ticket.code) | frozenset(ticket.harness_modules)
    digest = proofs.image(ticket.runtime, os.environ)
    backend = f"opatlas.backends.{ticket.backend}"
    runtime = importlib.import_module(f"{backend}.runtime")
    versions = runtime.versions()
    proofs.version(ticket.expect["version"], versions)
    runner = importlib.import_module(f"{backend}.{ticket.op}")
    device = runtime.device(Settings.from_dict(dict(ticket.measure)), ticket.platform)
    facts = device.facts()
    proofs.device(ticket.expect, facts)
    proofs.code(known)
    channel.send(
        "ready",
        protocol=VERSION,
        pid=os.getpid(),
        python=platform.python_version(),
        versions=versions,
        facts=facts,
        image_digest=digest,
    )
    return Cases(channel, device, runner, known)


class Cases:
    """Runs cases on a device; the built object stays for as long as cases share their build."""

    def __init__(self, channel: Channel, device: Any, runner: Any, known: frozenset[str]) -> None:
        self._channel = channel
        self._device = device
        self._runner = runner
        self._known = known
        self._modules = len(sys.modules)
        self._build: str | None = None
        self._built: Any = None
        self._phase = ""

    def outcome(self, message: Message) -> Message:
        """The one answer to a `case` message."""
        case_id = message["case"]
        failure: Failure | None = None
        rows: list[dict[str, Any]] = []
        try:
            rows = [self._row(case_id, message["build"])]
            if message.get("settle"):
                self._settle(case_id)
        except proofs.Refused:
            raise
        except BaseException as error:
            failure = self._after(classify.describe(error, self._phase))
        if len(sys.modules) != self._modules:
            proofs.code(self._known)
            self._modules = len(sys.modules)
        if failure is not None:
            return {"kind": "failure", "case": case_id, **failure.record()}
        return {"kind": "row", "case": case_id, "rows": rows}

    def _enter(self, phase: str, case_id: str) -> None:
        self._phase = phase
        self._channel.send("heartbeat", case=case_id, phase=phase)

    def _row(self, case_id: str, build: str) -> dict[str, Any]:
        self._enter(BEFORE, case_id)
        _, case = parse_id(case_id)
        device, runner = self._device, self._runner
        device.synchronize()
        if build != self._build:
            self._drop()
            device.check_alone()
            self._enter(BUILD, case_id)
            self._build = build
            self._built = runner.build(case, device)
        else:
            device.check_alone()
        self._enter(MEASURE, case_id)
        measurement = device.measure(runner.call(self._built, case, device))
        device.synchronize()
        source = runner.kernel_source(self._built, case)
        self._enter(AFTER, case_id)
        device.check_alone()
        return _checked(measurement, source)

    def _settle(self, case_id: str) -> None:
        """Lets an error that a finished case left behind come out."""
        self._enter(AFTER, case_id)
        self._drop()
        self._device.synchronize()

    def _drop(self) -> None:
        """Frees the built object and what the device holds for it."""
        if self._build is not None:
            self._build = self._built = None
            gc.collect()
            self._device.reset()

    def _after(self, failure: Failure) -> Failure:
        """The failure, or the broken device that shows only when it is asked."""
        if failure.leaves_a_broken_worker:
            return failure
        try:
            if failure.kind in (UNEXPECTED, OUT_OF_MEMORY) or self._built is None:
                self._drop()
            self._device.synchronize()
        except BaseException as error:
            later = classify.describe(error, self._phase)
            if later.kind == CUDA_FATAL:
                return later
        return failure


def _checked(measurement: Any, source: Any) -> dict[str, Any]:
    """A row's values; TypeError or ValueError where a backend returned something that is none."""
    if not isinstance(measurement, Measurement):
        raise TypeError(f"expected a Measurement, the backend returned {measurement!r}")
    if not isinstance(source, str):
        raise TypeError(f"expected a kernel source, the backend returned {source!r}")
    if not (math.isfinite(measurement.latency) and measurement.latency >= 0):
        raise ValueError(f"a latency of {measurement.latency} ms is impossible")
    row = {"kernel_source": source, **asdict(measurement)}
    encode(row)
    return row


def _restore(streams: int) -> None:
    """Gives standard output and error back to a worker whose last case closed or replaced them."""
    for fd, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(streams, fd)
        stream = getattr(sys, f"__{name}__")
        if stream.closed:
            stream = os.fdopen(fd, "w", 1, closefd=False, errors="backslashreplace")
            setattr(sys, f"__{name}__", stream)
        setattr(sys, name, stream)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
