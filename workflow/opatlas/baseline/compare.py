"""Compares a dataset with a baseline.

It is advisory: no fingerprint knows of it, so another baseline measures and publishes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from opatlas.baseline import coverage, environment
from opatlas.baseline.answers import DIFFERENT, SAME, UNKNOWN
from opatlas.baseline.matching import KERNEL, Matched, match_tables
from opatlas.baseline.ratios import LARGEST, TableRatios
from opatlas.baseline.side import Lacking, Side
from opatlas.ops.spec import Op, load_op, op_names
from opatlas.tables.merge import PER_MS

FORMAT = 1
LABELS = (KERNEL, "timing_method")

Record = dict[str, Any]


@dataclass
class Comparison:
    """What was found. `ops` are by op and precision, `groups` by size too; `notes` say what is left out."""

    new: str
    old: str
    environment: list[str] = field(default_factory=list)
    ops: list[Record] = field(default_factory=list)
    groups: list[Record] = field(default_factory=list)
    largest: list[Record] = field(default_factory=list)
    failures: Record = field(default_factory=dict)
    coverage: list[Record] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def answer(self) -> str:
        """`different` where an op is, else `cannot say` where an op's answer is, else `same`."""
        found = {entry["answer"] for entry in self.ops}
        return next((answer for answer in (DIFFERENT, UNKNOWN, SAME) if answer in found), UNKNOWN)

    def record(self) -> Record:
        values = dict(vars(self))
        head = {"format": FORMAT, "dataset": values.pop("new"), "baseline": values.pop("old")}
        return {**head, "answer": self.answer, **values}


def compare(new: Side, old: Side) -> Comparison:
    """Compares every table that both sides have; UserError when a side cannot be read."""
    found = Comparison(new.name, old.name)
    apart = _repeatability(new, old)
    after, before = environment.facts(new.provenance), environment.facts(old.provenance)
    kernels: tuple[environment.Words, environment.Words] = {}, {}
    for name, ops in _shared(new, old, found.notes):
        try:
            matched = match_tables(name, ops, new, old)
        except Lacking as lacking:
            found.notes.append(f"{name}: {lacking}")
            continue
        _note_labels(matched, *kernels)
        for repeated, side in zip(matched.pairs.repeated, (new, old), strict=True):
            if repeated:
                found.notes.append(f"{name}: {repeated} rows of {side.name} repeat the key of an earlier row")
        found.coverage += coverage.keys(matched)
        for column, unit in _times(ops[0], matched, found.notes):
            ratios = TableRatios(matched, column, unit, apart)
            if ratios.unusable:
                found.notes.append(f"{name}: of {ratios.unusable} pairs one {column} is no positive number")
            found.ops += ratios.ops()
            found.groups += ratios.groups()
            found.largest += ratios.largest()
    found.largest.sort(key=lambda row: -abs(float(np.log(row["ratio"]))))
    del found.largest[LARGEST:]
    found.environment = environment.differences({**kernels[0], **after}, {**kernels[1], **before})
    found.failures = coverage.failures(new, old)
    return found


def _shared(new: Side, old: Side, notes: list[str]) -> Iterator[tuple[str, list[Op]]]:
    """The tables of both sides with their ops; what is left out is noted."""
    ops: dict[str, list[Op]] = {}
    for op in map(load_op, op_names()):
        ops.setdefault(op.table.name, []).append(op)
    for name in sorted(new.tables.keys() | old.tables.keys()):
        if name not in ops:
            notes.append(f"{name}: is a table of no op")
        elif name not in new.tables or name not in old.tables:
            lacking = new if name in old.tables else old
            notes.append(f"{name}: {lacking.name} has no such table")
        else:
            yield name, ops[name]


def _repeatability(new: Side, old: Side) -> Mapping[str, float]:
    """op -> how far two measurements of a case are apart, by the audit samples of both sides; the larger."""
    found: dict[str, float] = {}
    for side in (new, old):
        for op, entry in (side.provenance.get("repeatability") or {}).items():
            found[op] = max(found.get(op, 0.0), float(entry.get("p95") or 0.0))
    return found


def _note_labels(matched: Matched, new: environment.Words, old: environment.Words) -> None:
    """Adds which kernels, timers and devices the rows of a table name."""
    for words, table in ((new, matched.new), (old, matched.old)):
        for label in LABELS:
            if label in table.column_names:
                words[f"{label} of {matched.name}"] = set(table[label].unique().drop_null().to_pylist())
        if "device" in table.column_names:
            words.setdefault("device", set()).update(table["device"].unique().drop_null().to_pylist())


def _times(op: Op, matched: Matched, notes: list[str]) -> Iterator[tuple[str, str]]:
    """The columns that hold times, with their unit: `latency`, or what a table has in place of it."""
    times = [(name, unit) for name, unit in op.table.measured if unit in PER_MS]
    for name, unit in [(name, unit) for name, unit in times if name == "latency"] or times:
        if name in matched.new.column_names and name in matched.old.column_names:
            yield name, unit
        else:
            notes.append(f"{matched.name}: one side has no column {name}")
