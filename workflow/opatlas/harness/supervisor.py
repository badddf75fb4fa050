"""The supervisor: sees to it that every case of a ticket ends, once, as a row or a failure in a journal.

`python -m opatlas.harness.supervisor TICKET`. Exit 0: every case has an outcome, and the receipt says so;
1: the user has something to mend, one line says what; 75: a signal ended it, and the next run goes on with
what is missing.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from opatlas.errors import UserError
from opatlas.files import disk_error
from opatlas.harness import environment, journal, linux, receipt, signals
from opatlas.harness.attempt import Attempt
from opatlas.harness.journal import Journals
from opatlas.harness.ticket import Ticket, TicketCase, load

EXIT_REFUSED = 1
EXIT_USAGE = 2
EXIT_STOPPED = 75

# When the time of the SLURM job is over, in seconds since 1970; cluster/job.py sets it.
JOB_END = "OPATLAS_JOB_END"


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m opatlas.harness.supervisor TICKET", file=sys.stderr)
        return EXIT_USAGE
    try:
        return supervise(load(Path(arguments[0])))
    except UserError as error:
        print(f"opatlas: {error}", file=sys.stderr)
        return EXIT_REFUSED
    except OSError as error:
        # A disk or a permission, never a mistake of a case: those are recorded.
        place = error.filename or Path(arguments[0]).parent
        print(f"opatlas: {disk_error(place, error)}", file=sys.stderr)
        return EXIT_REFUSED


def supervise(ticket: Ticket) -> int:
    """Measures what has no outcome yet; the exit status is that of the program."""
    environment.remove_leftovers(os.environ)
    journals = journal.read(ticket.folder, ticket.context)
    for problem in journals.problems:
        print(f"opatlas: {problem}", file=sys.stderr)
    if todo := missing(ticket, journals):
        linux.no_core_dumps()
        linux.adopt_orphans()
        ends = float(end) if (end := os.environ.get(JOB_END)) else None
        with signals.listening(ticket.run.grace_s, ends) as stop, environment.scratch(os.environ) as folder:
            reason = Attempt(ticket, stop, folder).run(todo, journals)
        if reason is not None:
            print(f"opatlas: stopped by {reason}; run again to go on", file=sys.stderr)
            return EXIT_STOPPED
        journals = journal.read(ticket.folder, ticket.context)
    receipt.write(ticket, journals)
    return 0


def missing(ticket: Ticket, journals: Journals) -> list[TicketCase]:
    """The cases without an outcome, in order; those that a lost attempt was running come last."""
    cases = [case for case in ticket.cases if case.key not in journals.outcomes]
    return sorted(cases, key=lambda case: journals.interrupted[case.key])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
