"""Keeps one worker at hand, gives it cases, and turns whatever then happens into rows or a failure."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from opatlas.errors import UserError
from opatlas.harness import environment, failures, processes
from opatlas.harness.failures import Failure, from_record
from opatlas.harness.log import Log
from opatlas.harness.processes import Worker
from opatlas.harness.protocol import VERSION, Closed, Message, ProtocolError
from opatlas.harness.signals import Stop
from opatlas.harness.ticket import Ticket, TicketCase

TICK_S = 0.25
LAST_WORDS_S = 2.0
START_TRIES = 2

BEFORE = "before"
BUILD = "build"

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
        self._build: str | None = None
        self._phase: str | None = None
        self.environment = environment.clean(os.environ, ticket.runtime.get("kind") == "image", folder)

    def measure(self, case: TicketCase, settle: bool = False) -> Answer:
        """Runs one case in the present worker, or in a fresh one where there is none.

        UserError when no worker can be had, Stopped when a signal doesn't let the case end.
        """
        worker = self.ensure()
        limits = self._ticket.run
        allowed = limits.case_s(case.cost_s)
        self._phase = None
        try:
            self._send(worker, "case", case=case.id, build=case.build, settle=settle)
            until = time.monotonic() + allowed
            while True:
                message = self._next(worker, until)
                if message["type"] == "refused":
                    raise UserError(f"{self._ticket.path}: {case.id}: {message['message']}")
                if message.get("case") != case.id:
                    raise ProtocolError(f"{message['type']} for {message.get('case')}")
                if message["type"] == "heartbeat":
                    self._phase = message["phase"]
                    until = time.monotonic() + allowed + (limits.build_s if self._phase == BUILD else 0)
                elif message["type"] == "row":
                    return list(message["rows"])
                elif message["type"] == "failure":
                    return from_record(message)
                else:
                    raise ProtocolError(f"{message['type']} instead of an outcome")
        except Lost as lost:
            return lost.failure
        except ProtocolError as error:
            return Failure(
                failures.WORKER_DIED,
                f"the worker said what is no answer ({error}), and was killed",
                reason="protocol",
                phase=self._phase,
            )

    def end(self) -> None:
        """Ends the present worker with all that it started. UserError where it doesn't end."""
        worker, self._worker = self._worker, None
        if worker is not None:
            try:
                processes.end(worker)
            except processes.Unkillable as error:
                raise UserError(f"{self._ticket.path}: {error}; this node needs its administrator") from None

    def ensure(self) -> Worker:
        """The present worker, or else a fresh one. UserError when none gets ready."""
        return self._worker or self._start()

    def _start(self) -> Worker:
        limit = self._ticket.run.start_s
        for _ in range(START_TRIES):
            self._worker = worker = processes.start(self.environment, self._folder, self._log.fd)
            try:
                self._send(worker, "start", protocol=VERSION, ticket=str(self._ticket.path))
                message = self._next(worker, time.monotonic() + limit)
            except (Lost, ProtocolError) as error:
                problem = str(error)
                self.end()
                continue
            if message["type"] == "refused":
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
            if self._stop.now:
                raise Stopped
            if (now := time.monotonic()) > until:
                raise Lost(
                    Failure(
                        failures.HANG,
                        "no answer within the deadline, so the worker was killed",
                        phase=self._phase,
                        stack=worker.dump_stack(),
                    )
                )
            self._tick()
            self._log.tick()
            select.select([worker.channel.read_fd, self._stop.wake_fd], [], [], min(TICK_S, until - now))
            self._stop.drain()

    def _died(self, worker: Worker) -> Lost:
        ending = worker.ending(LAST_WORDS_S)
        return Lost(
            Failure(
                failures.WORKER_DIED,
                f"the worker ended: {ending}" if ending else "the worker closed its pipe, and was killed",
                phase=self._phase,
                stack=worker.stack(),
                exit=ending,
            )
        )
