"""Asks SLURM about jobs: by squeue, by sacct, or by both where one of them has lost sight of a job."""

from __future__ import annotations

import getpass
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from opatlas.cluster.states import Job, first_word
from opatlas.errors import UserError

TIMEOUT_S = 60
# SLURM kills what does not end by itself, after its KillWait.
END_S = 300
SQUEUE = "squeue"
SACCT = "sacct"
TOOLS = (SACCT, SQUEUE)
# So many answers in a row must lack a job before it counts as gone, and so many questions in a row must
# fail before the user hears of it.
ABSENCES = 2
FAILURES = 3

# Marks the comment of each job of ours; its last word is the receipt that the job is to write.
MARK = "opatlas"


@dataclass(frozen=True)
class InFlight:
    """A job of an earlier run in this working tree that SLURM still has."""

    id: str
    receipt: Path


def comment(op: str, shard: str, dataset: str, receipt: str) -> str:
    return f"{MARK} {op} {shard} of {dataset} {receipt}"


def in_flight(workdir: Path) -> list[InFlight]:
    """Jobs that were submitted from `workdir` and are not over, oldest first."""
    jobs = []
    for line in ask([SQUEUE, "--noheader", *_mine(), "--format=%i|%Z|%k"]):
        job, _, rest = line.partition("|")
        folder, _, text = rest.rpartition("|")
        words = text.split()
        if Path(folder) == workdir and len(words) > 1 and words[0] == MARK:
            jobs.append(InFlight(job, Path(words[-1])))
    return sorted(jobs, key=lambda found: int(found.id))


def end_earlier(workdir: Path) -> list[str]:
    """Cancels the jobs of an earlier run and waits until they are over; returns their ids.

    What they finished is in their journals. UserError when they do not end.
    """
    found = [job.id for job in in_flight(workdir)]
    cancel(found)
    deadline = time.monotonic() + END_S
    while in_flight(workdir):
        if time.monotonic() > deadline:
            raise UserError(f"SLURM jobs {' '.join(found)} of an earlier run do not end: see squeue --me")
        time.sleep(1)
    return found


def ask(command: Sequence[str]) -> list[str]:
    """The lines a SLURM command answers; UserError when it can't."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except FileNotFoundError:
        raise UserError(
            f"{command[0]} is not on PATH: submit from a host that has SLURM's commands"
        ) from None
    except subprocess.TimeoutExpired:
        raise UserError(f"{command[0]} gave no answer within {TIMEOUT_S} s") from None
    if done.returncode:
        said = " ".join(done.stderr.split()) or "nothing"
        raise UserError(f"{command[0]} failed (exit {done.returncode}): it said {said}")
    return done.stdout.splitlines()


def preflight(wanted: str | None) -> tuple[str, str]:
    """Which tool tells how jobs end, and a sentence about it; UserError where none can.

    `wanted` is the user's choice; without one it is sacct where accounting works, else squeue.
    """
    problems = {}
    for tool in [wanted] if wanted else TOOLS:
        try:
            if tool == SACCT:
                ask(_sacct(["1"]))
            else:
                ask([SQUEUE, "--noheader", *_mine()])
        except UserError as error:
            problems[tool] = str(error)
            continue
        why = f" ({problems[SACCT]})" if SACCT in problems else ""
        return tool, f"SLURM jobs are followed by {tool}{why}"
    raise UserError("cannot follow jobs on SLURM: " + "; ".join(problems.values()))


@dataclass
class Watch:
    """Follows jobs by one tool; `warn` gets a sentence when answers stay away, and when they come again."""

    tool: str
    warn: Callable[[str], None]
    failures: int = 0
    absences: dict[str, int] = field(default_factory=dict)

    def look(self, ids: Sequence[str]) -> dict[str, Job | None]:
        """What is known of each job now: None for one that SLURM no longer knows.

        A job about which nothing can be said yet is left out.
        """
        try:
            found = self._ask(ids)
        except UserError as error:
            self.failures += 1
            if self.failures == FAILURES:
                self.warn(f"opatlas: {error}. Jobs go on; asking again until there is an answer.")
            return {}
        if self.failures >= FAILURES:
            self.warn(f"opatlas: {self.tool} answers again.")
        self.failures = 0
        known: dict[str, Job | None] = {}
        for job in ids:
            if job in found:
                self.absences.pop(job, None)
                known[job] = found[job]
                continue
            self.absences[job] = self.absences.get(job, 0) + 1
            if self.absences[job] >= ABSENCES:
                known[job] = None
        return known

    def _ask(self, ids: Sequence[str]) -> dict[str, Job]:
        if self.tool == SQUEUE:
            return _from_squeue(ids)
        try:
            found = parse(ask(_sacct(ids)), ids)
        except UserError as error:
            # Accounting may be down while the controller is not.
            found = _from_squeue(ids)
            if self.failures == 0:
                self.warn(f"opatlas: {error}; asking squeue instead")
                self.tool = SQUEUE
            return found
        # A job that accounting does not have yet is one that the controller has.
        missing = [job for job in ids if job not in found]
        return {**found, **(_from_squeue(missing) if missing else {})}


def _from_squeue(ids: Iterable[str]) -> dict[str, Job]:
    return parse(ask([SQUEUE, "--noheader", "--states=all", *_mine(), "--format=%i|%T|%r|%N"]), ids)


def _sacct(ids: Iterable[str]) -> list[str]:
    form = "--format=JobIDRaw,State,Reason,NodeList"
    return [SACCT, "--allocations", "--noheader", "--parsable2", form, f"--jobs={','.join(ids)}"]


def parse(lines: Iterable[str], ids: Iterable[str]) -> dict[str, Job]:
    """Jobs from lines `id|state|reason|node`; other people's and steps are left out."""
    wanted = set(ids)
    found = {}
    for line in lines:
        words = [*line.split("|"), "", "", ""]
        if words[0] in wanted:
            reason = re.sub(r"\s+", "_", words[2].strip())
            found[words[0]] = Job(first_word(words[1]), reason, words[3].strip())
    return found


def _mine() -> list[str]:
    return [f"--user={getpass.getuser()}"]


def nodes(partition: str) -> set[str]:
    """The nodes of a partition; empty where SLURM does not say."""
    try:
        lines = ask(["sinfo", "--noheader", "--Node", f"--partition={partition}", "--format=%N"])
    except UserError:
        return set()
    return {line.strip() for line in lines}


def cancel(ids: Sequence[str]) -> None:
    if ids:
        ask(["scancel", *ids])
