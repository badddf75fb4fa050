"""The journal of an attempt: append-only, one record a line, readable whenever the writer is killed.

A line is `<crc32 of the JSON, 8 hex digits> <JSON>`. One supervisor writes one file; nobody else ever does,
so there is no lock. docs/harness.md lists the records.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opatlas.files import disk_error, sync_folder
from opatlas.harness.failures import BEFORE, CUDA_FATAL
from opatlas.harness.ticket import SUFFIX, Key

FORMAT = 1
SYNC_S = 0.5
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC

Record = dict[str, Any]


class Writer:
    """Appends records to a new file: each is with the operating system when `append` returns.

    `tick`, called often, puts them on the disk at least once a second; `sync` does so at once.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = os.open(path, NEW_FILE, 0o644)
        self._size = 0
        self._dirty_since: float | None = None
        sync_folder(path.parent)

    def append(self, record: Mapping[str, Any]) -> None:
        """UserError when the disk is full; the journal then ends with its last whole record."""
        line = _line(record)
        try:
            rest = line
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError as error:
            os.ftruncate(self._fd, self._size)
            raise disk_error(self.path, error) from None
        self._size += len(line)
        self._dirty_since = self._dirty_since or time.monotonic()

    def tick(self) -> None:
        if self._dirty_since is not None and time.monotonic() - self._dirty_since >= SYNC_S:
            self.sync()

    def sync(self) -> None:
        try:
            os.fsync(self._fd)
        except OSError as error:
            raise disk_error(self.path, error) from None
        self._dirty_since = None

    def close(self) -> None:
        os.close(self._fd)


def _line(record: Mapping[str, Any]) -> bytes:
    text = json.dumps(record, allow_nan=False, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _parse(line: bytes) -> Record | None:
    crc, _, text = line.partition(b" ")
    if len(crc) != 8 or crc != b"%08x" % zlib.crc32(text):
        return None
    record = json.loads(text)
    return record if isinstance(record, dict) else None


def records(path: Path, problems: list[str] | None = None) -> Iterator[Record]:
    """The whole records of one file, in order.

    A torn end (the writer or its machine died) is left out silently; a broken line before a whole one is
    named in `problems`.
    """
    broken: list[int] = []
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], 1):
        record = _parse(line)
        if record is None:
            broken.append(number)
            continue
        if problems is not None:
            problems += [f"{path}: line {lost} is corrupt and left out" for lost in broken]
        broken.clear()
        yield record


@dataclass
class Journals:
    """What the journals of one folder say, for one context.

    `outcomes`: exactly one row or failure record per (case, generation): a row wins over a failure, then the
    first one wins; a row under suspicion doesn't count. `superseded`: those that don't count.
    `firsts`: failures whose lone repeat has no outcome yet. `interrupted`: how many attempts were lost (or
    are alive) while running a case that has no outcome. `ends`: why attempts ended, by attempt.
    """

    attempts: dict[str, Record] = field(default_factory=dict)
    outcomes: dict[Key, Record] = field(default_factory=dict)
    superseded: list[Record] = field(default_factory=list)
    controls: list[Record] = field(default_factory=list)
    notes: list[Record] = field(default_factory=list)
    firsts: dict[Key, Record] = field(default_factory=dict)
    interrupted: Counter[Key] = field(default_factory=Counter)
    ends: dict[str, Record] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def key_of(record: Mapping[str, Any]) -> Key:
    return Key(record["case"], record["generation"])


def suspect(outcome: Record) -> Record | None:
    """The row (its case, generation and attempt) that may stem from a device which it broke itself.

    A device error shows late, so it is that of the case before, where the one that met the error ran well
    alone or had not begun. The row counts again when a record clears it.
    """
    first = outcome["first"]
    if not first or first["class"] != CUDA_FATAL or not first.get("after"):
        return None
    return dict(first["after"]) if outcome["record"] == "row" or first["phase"] == BEFORE else None


def read(folder: Path, context: str | None = None) -> Journals:
    """Reads all journals of an attempts folder; None takes records of every context.

    A journal of another context, or without its first record, is left out and named in `problems`.
    """
    journals = Journals()
    files: list[tuple[Record, list[Record]]] = []
    for path in sorted(folder.glob("attempt-*.journal")):
        whole = list(records(path, journals.problems))
        if not whole:
            # An attempt that was lost before its worker was ready.
            continue
        head, *rest = whole
        if head["record"] != "attempt":
            journals.problems.append(f"{path}: does not begin with its attempt and is left out")
        elif head["format"] != FORMAT:
            journals.problems.append(f"{path}: is of format {head['format']}, not {FORMAT}, and is left out")
        elif context is not None and head["context"] != context:
            journals.problems.append(f"{path}: was measured in another context and is left out")
        else:
            files.append((head, rest))
    files.sort(key=lambda file: (file[0]["started"], file[0]["attempt"]))
    running: dict[str, Key] = {}
    found: list[Record] = []
    suspects: set[tuple[Key, str]] = set()
    cleared: set[tuple[Key, str]] = set()
    for head, rest in files:
        attempt = head["attempt"]
        journals.attempts[attempt] = head
        for record in rest:
            kind = record["record"]
            if kind == "begin":
                running[attempt] = key_of(record)
                continue
            if kind in ("row", "failure"):
                found.append(record)
                if row := suspect(record):
                    suspects.add((key_of(row), row["attempt"]))
            elif kind == "first":
                journals.firsts[key_of(record)] = record
            elif kind == "cleared":
                cleared.add((key_of(record), record["row"]))
            elif kind == "control":
                journals.controls.append(record)
            elif kind == "end":
                journals.ends[attempt] = record
            else:
                journals.notes.append(record)
            running.pop(attempt, None)
    _settle(journals, found, suspects - cleared)
    journals.interrupted.update(key for key in running.values() if key not in journals.outcomes)
    return journals


def _settle(journals: Journals, found: list[Record], void: set[tuple[Key, str]]) -> None:
    """Chooses the one outcome of each key; `void` are rows that don't count."""
    for wanted in ("row", "failure"):
        for record in found:
            if record["record"] != wanted:
                continue
            key = key_of(record)
            is_void = wanted == "row" and (key, record["attempt"]) in void
            if is_void or key in journals.outcomes:
                journals.superseded.append(record)
            else:
                journals.outcomes[key] = record
    for key in journals.outcomes.keys() & journals.firsts.keys():
        del journals.firsts[key]


@dataclass(frozen=True)
class Progress:
    """Where the work in one attempts folder stands; times in seconds since the epoch."""

    planned: int
    rows: int
    failures: Counter[str]
    attempts: int
    finished: bool
    running: tuple[str, ...]
    node: str | None
    updated: float | None
    problems: tuple[str, ...]


def progress(folder: Path) -> Progress:
    """Live progress of a shard, from its tickets and journals alone."""
    tickets = sorted(folder.glob("*" + SUFFIX))
    planned = set()
    context = None
    for path in tickets:
        ticket = json.loads(path.read_bytes())
        context = ticket["context"]
        planned |= {Key(case["id"], case.get("generation", 0)) for case in ticket["cases"]}
    journals = read(folder, context)
    outcomes = [record for key, record in journals.outcomes.items() if key in planned]
    newest = max((path.stat().st_mtime for path in folder.glob("attempt-*.journal")), default=None)
    return Progress(
        planned=len(planned),
        rows=sum(record["record"] == "row" for record in outcomes),
        failures=Counter(record["class"] for record in outcomes if record["record"] == "failure"),
        attempts=len(journals.attempts),
        finished=bool(tickets)
        and all(path.with_name(path.name.removesuffix(SUFFIX) + ".done.json").exists() for path in tickets),
        running=tuple(key.case for key in journals.interrupted),
        node=next((head["node"] for head in reversed(journals.attempts.values())), None),
        updated=newest,
        problems=tuple(journals.problems),
    )
