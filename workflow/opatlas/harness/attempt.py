"""One run over what a ticket still misses: one journal, one log, as many workers as it takes.

What happens after a failure is the escalation ladder of docs/harness.md.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import socket
import sys
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from opatlas.errors import UserError
from opatlas.files import disk_error
from opatlas.harness import environment, journal
from opatlas.harness.failures import DISK_FULL, Failure
from opatlas.harness.journal import Journals, Record
from opatlas.harness.log import Log
from opatlas.harness.protocol import Message
from opatlas.harness.signals import Stop
from opatlas.harness.ticket import Ticket, TicketCase
from opatlas.harness.workers import Answer, Stopped, Workers

CONTROL_COST_S = 1.0
LEAST_SPACE = 64 << 20


class Attempt:
    """Measures cases one after the other; each has its outcome in the journal before the next one starts."""

    def __init__(self, ticket: Ticket, stop: Stop, folder: Path) -> None:
        self._started = datetime.now(timezone.utc)
        self.id = f"{self._started:%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"
        self._ticket = ticket
        self._stop = stop
        self._journal = journal.Writer(ticket.folder / f"attempt-{self.id}.journal")
        self._log = Log(ticket.folder / f"attempt-{self.id}.log")
        self._workers = Workers(ticket, stop, folder, self._log, self._ready, self._journal.tick)
        self._folder = folder
        self._opened = False
        self._order = 0
        # The case whose row the present worker wrote last: an error that comes out later may be its doing.
        self._previous: Mapping[str, Any] | None = None

    def run(self, todo: list[TicketCase], journals: Journals) -> str | None:
        """Measures what `journals` of earlier attempts lack.

        The name of the signal that ended it early, or None; UserError when it can't go on.
        """
        reason = "error"
        try:
            self._controls("first")
            for case in todo:
                if self._stop.reason:
                    break
                self._finish(case, journals.firsts.get(case.key))
            else:
                self._controls("last")
            reason = self._stop.reason or "done"
        except Stopped:
            reason = self._stop.reason or reason
        except UserError as error:
            reason = str(error)
            raise
        finally:
            self._close(reason)
        return self._stop.reason

    def _finish(self, case: TicketCase, first: Record | None) -> None:
        """Brings a case to its outcome; `first`: its failure in an earlier attempt, without a repeat yet."""
        if first is None:
            previous = self._previous
            answer = self._measure(case)
            if not (isinstance(answer, Failure) and answer.is_repeated):
                self._outcome(case, answer, None)
                return
            first = self._record("first", case, after=previous, **answer.record())
            self._journal.append(first)
            self._journal.sync()
        self._replace()
        if self._stop.reason:
            return
        answer = self._measure(case)
        if isinstance(answer, Failure) and answer.reason == DISK_FULL:
            self._require_space()
        outcome = self._outcome(case, answer, first)
        if row := journal.suspect(outcome):
            self._blame(row, outcome)

    def _blame(self, row: Record, outcome: Record) -> None:
        """Runs the case of a suspected row alone: if it breaks its worker, the device error was its doing."""
        case = next((case for case in self._ticket.cases if case.key == journal.key_of(row)), None)
        if case is None or self._stop.reason:
            return
        self._replace()
        answer = self._measure(case, settle=True)
        if isinstance(answer, Failure) and answer.leaves_a_broken_worker:
            self._outcome(case, answer, outcome["first"])
        else:
            self._journal.append(self._record("cleared", case, row=row["attempt"], seen_at=outcome["case"]))

    def _measure(self, case: TicketCase, settle: bool = False) -> Answer:
        self._order += 1
        self._workers.ensure()
        self._journal.append(self._record("begin", case))
        return self._workers.measure(case, settle)

    def _outcome(self, case: TicketCase, answer: Answer, first: Record | None) -> Record:
        """Writes the one record of a case's outcome."""
        if not isinstance(answer, Failure):
            record = self._record("row", case, rows=answer, first=first)
            self._journal.append(record)
            self._previous = {"case": case.id, "generation": case.generation, "attempt": self.id}
            return record
        repeat = answer.record() if first else None
        record = self._record("failure", case, group=case.group, **answer.record())
        record.update(first=first, repeat=repeat)
        self._journal.append(record)
        self._journal.sync()
        self._previous = None
        if answer.leaves_a_broken_worker:
            self._replace()
        return record

    def _require_space(self) -> None:
        """UserError when the disk is full without what a case put there: then no case is to blame."""
        self._replace()
        if shutil.disk_usage(self._folder).free < LEAST_SPACE:
            raise disk_error(self._folder, OSError(errno.ENOSPC, "no space"))

    def _replace(self) -> None:
        self._previous = None
        self._workers.end()

    def _controls(self, when: str) -> None:
        """Times the control cases; they show a slow node or a drift, and are never rows."""
        for case_id in self._ticket.control:
            if self._stop.reason:
                return
            self._order += 1
            case = TicketCase(case_id, f"control/{case_id}", CONTROL_COST_S)
            answer = self._workers.measure(case)
            failure = answer if isinstance(answer, Failure) else None
            values = {"failure": failure.record()} if failure else {"rows": answer}
            self._journal.append(self._record("control", case, when=when, **values))
            self._previous = None
            if failure and failure.leaves_a_broken_worker:
                self._replace()

    def _record(self, kind: str, case: TicketCase, **fields: Any) -> Record:
        return {
            "record": kind,
            "case": case.id,
            "generation": case.generation,
            "attempt": self.id,
            "order": self._order,
            **fields,
        }

    def _ready(self, message: Message) -> None:
        """Notes a worker that is ready; the first one opens the journal with what it has proved."""
        if self._opened:
            what = {"record": "note", "attempt": self.id, "what": "worker", "pid": message["pid"]}
            self._journal.append(what)
        else:
            self._open(message)

    def _open(self, proved: Message) -> None:
        ticket = self._ticket
        self._opened = True
        self._journal.append(
            {
                "record": "attempt",
                "format": journal.FORMAT,
                "attempt": self.id,
                "ticket": ticket.path.name,
                "dataset": ticket.dataset,
                "backend": ticket.backend,
                "version": ticket.version,
                "op": ticket.op,
                "shard": ticket.shard,
                "fingerprint": ticket.fingerprint,
                "context": ticket.context,
                "node": socket.gethostname(),
                "job_id": os.environ.get("SLURM_JOB_ID"),
                "pid": os.getpid(),
                "started": self._started.isoformat(),
                "python": proved.get("python"),
                "image_digest": proved.get("image_digest"),
                "versions": proved.get("versions", {}),
                "facts": proved.get("facts", {}),
                "environment": environment.recorded(self._workers.environment),
                "cmdline": sys.orig_argv,
                "log": self._log.path.name,
            }
        )

    def _close(self, reason: str) -> None:
        """Ends the worker and the journal. A journal that can't be written to stays as it is."""
        try:
            self._workers.end()
        finally:
            if not self._opened:
                self._open({})
            self._journal.append({"record": "end", "attempt": self.id, "reason": reason})
            self._journal.sync()
            self._journal.close()
            self._log.close()
