"""Keeps one worker at hand, gives it cases, and turns whatever then happens into rows or a failure."""

from __future__ import annotations

import os
import select
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from opatlas.errors import UserError
from opatlas.harness import environment, failures, linux, processes
from opatlas.harness.failures import Failure, from_record
from opatlas.harness.log import Log
from opatlas.harness.processes import Worker
from opatlas.harness.protocol import VERSION, Closed, Message, ProtocolError
from opatlas.harness.signals import Stop
from opatlas.harness.ticket import Ticket, TicketCase

TICK_S = 0.25
LAST_WORDS_S = 2.0
START_TRIES = 2
# Of the memory that is there when the attempt starts; beyond it the kernel would choose whom to kill.
MEMORY_SHARE = 0.9

Answer = list[dict[str, Any]] | Failure


class Stopped(Exception):
    """A signal ends the attempt without waiting for the running case."""


class Lost(Exception):
    """The worker will not answer any more; `failure` says why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Workers:
    """The one worker that is alive, if any. `ready` is called with what each new one has proved."""

    def __init__(
        self,
        ticket: Ticket,
        stop: Stop,
        folder: Path,
        log: Log,
        ready: Callable[[Message], None],
        tick: Callable[[], None],
    ) -> None:
        self._ticket = ticket
        self._stop = stop
        self._folder = folder
        self._log = log
        self._ready = ready
        self._tick = tick
        self._worker: Worker | None = None
        self._rooms = 0
        self._busy = False
        self._broken = False
        self._phase: str | None = None
        limit = ticket.run.memory_gib
        self._memory = limit * 2**30 if limit else MEMORY_SHARE * linux.available_bytes()
        self._furnish()

    def measure(self, case: TicketCase, settle: bool = False) -> Answer:
        """Runs one case in the present worker, or in a fresh one where there is none.

        UserError when no worker can be had, Stopped when a signal doesn't let the case end.
        """
        worker = self.ensure()
        self._busy, self._phase = True, None
        try:
            answer = self._ask(worker, case, settle)
        except Lost as lost:
            answer = lost.failure
            self._log.note(f"{case.id}: {answer.message}\n{answer.stack or ''}")
        except ProtocolError as error:
            what = f"the worker said what is no answer ({error}), and was killed"
            answer = Failure(failures.WORKER_DIED, what, reason=failures.PROTOCOL, phase=self._phase)
        finally:
            self._busy = False
        self._broken = isinstance(answer, Failure) and answer.leaves_a_broken_worker
        return answer

    def _ask(self, worker: Worker, case: TicketCase, settle: bool) -> Answer:
        allowed = self._ticket.run.case_s(case.cost_s)
        self._send(worker, "case", case=case.id, build=case.build, settle=settle)
        until = time.monotonic() + allowed
        while True:
            message = self._next(worker, until)
            kind = message["type"]
            if kind == "refused":
                raise UserError(f"{self._ticket.path}: {case.id}: {message['message']}")
            if message.get("case") != case.id:
                raise ProtocolError(f"{kind} for {message.get('case')}")
            if kind == "row":
                return list(message["rows"])
            if kind == "failure":
                return from_record(message)
            if kind != "heartbeat":
                raise ProtocolError(kind)
            self._phase = message["phase"]
            build_s = self._ticket.run.build_s if self._phase == failures.BUILD else 0.0
            until = time.monotonic() + build_s + allowed

    def ensure(self) -> Worker:
        """The present worker, or else a fresh one. UserError when none gets ready."""
        return self._worker or self._start()

    def end(self) -> None:
        """Ends the present worker with all that it started; UserError where it doesn't end.

        Caches of a worker that broke go with it: what it was writing may be half done, or locked for ever.
        """
        worker, self._worker = self._worker, None
        if worker is None:
            return
        try:
            processes.end(worker)
        except processes.Unkillable as error:
            raise UserError(f"{self._ticket.path}: {error}; this node needs its administrator") from None
        if self._broken:
            self._broken = False
            shutil.rmtree(self._room, ignore_errors=True)
            self._furnish()

    def _furnish(self) -> None:
        """Makes a new set of folders for workers to come."""
        self._rooms += 1
        # A short name, for the sockets that some frameworks make in it.
        self._room = self._folder / str(self._rooms)
        self._room.mkdir()
        self.environment = environment.clean(
            os.environ, self._ticket.runtime.get("kind") == "image", self._room
        )

    def _start(self) -> Worker:
        problem = ""
        for _ in range(START_TRIES):
            self._worker = worker = processes.start(self.environment, self._room, self._log.fd)
            try:
                self._send(worker, "start", protocol=VERSION, ticket=str(self._ticket.path))
                message = self._next(worker, time.monotonic() + self._ticket.run.start_s)
            except (Lost, ProtocolError) as error:
                problem = str(error)
                self._broken = True
                self.end()
                continue
            if message["type"] != "ready":
                raise UserError(f"{self._ticket.path}: {message['message']}")
            self._ready(message)
            return worker
        raise UserError(f"{self._ticket.path}: no worker gets ready: {problem}; see {self._log.path}")

    def _send(self, worker: Worker, kind: str, **fields: Any) -> None:
        try:
            worker.channel.send(kind, **fields)
        except Closed:
            raise self._died(worker) from None

    def _next(self, worker: Worker, until: float) -> Message:
        """The worker's next message; Lost when it ended, hangs or takes all memory."""
        while True:
            # Looked at before the messages: what it said before it ended still counts.
            ended = worker.ending() is not None
            try:
                message = worker.channel.poll()
            except Closed:
                raise self._died(worker) from None
            if message is not None:
                return message
            if ended:
                raise self._died(worker)
            if self._stop.now or (self._stop.reason and not self._busy):
                raise Stopped
            if (now := time.monotonic()) > until:
                what = "no answer within the deadline, so the worker was killed"
                raise Lost(Failure(failures.HANG, what, phase=self._phase, stack=worker.dump_stack()))
            if (used := linux.resident_bytes(worker.process.pid)) > self._memory:
                what = f"the worker held {used:,} bytes of the host's memory, and was killed"
                raise Lost(Failure(failures.OUT_OF_MEMORY, what, reason=failures.HOST, phase=self._phase))
            self._tick()
            self._log.tick()
            select.select([worker.channel.read_fd, self._stop.wake_fd], [], [], min(TICK_S, until - now))
            self._stop.drain()

    def _died(self, worker: Worker) -> Lost:
        ending = worker.ending(LAST_WORDS_S)
        what = f"the worker ended: {ending}" if ending else "the worker closed its pipe, and was killed"
        return Lost(Failure(failures.WORKER_DIED, what, phase=self._phase, stack=worker.stack(), exit=ending))
