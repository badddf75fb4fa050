"""Where the grid has holes: points that failed, between or beyond measured ones along an axis."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from opatlas.checks.curves import AXES, along, axes
from opatlas.checks.evidence import Evidence, OpRows
from opatlas.checks.finding import ADVISORY, Finding, some
from opatlas.ops.spec import Array

NAME = "ragged"


def check(evidence: Evidence) -> Iterator[Finding]:
    for own in evidence.ops:
        have = np.bincount(own.place, minlength=len(own.op.rows)) > 0
        if have.any() and not have.all():
            yield from _holes(own, have)


def _holes(own: OpRows, have: Array) -> Iterator[Finding]:
    inside, beyond = (np.zeros(len(have), bool) for _ in range(2))
    lines: list[tuple[int, str]] = []
    for axis in axes(own.op, AXES):
        order, curve = along(own.op, axis, np.arange(len(have)))
        known = have[order]
        curves = pd.Series(known).groupby(curve)
        before = curves.cumsum().to_numpy()
        after = curves.transform("sum").to_numpy() - before
        between = ~known & (before > 0) & (after > 0)
        inside[order[between]] = True
        beyond[order[~known & ((before > 0) != (after > 0))]] = True
        lines += _lines(own, axis, order[between])
    if inside.any():
        message = "planned points between measured ones have no row: consumers interpolate across them"
        worst = some(line for _, line in sorted(lines, key=lambda entry: -entry[0]))
        yield _finding(own, message, int(inside.sum()), worst)
    ends = beyond & ~inside
    if ends.any():
        message = "planned points beyond the measured ones have no row: consumers extrapolate to them"
        yield _finding(own, message, int(ends.sum()), own.planned_ids(ends))


def _lines(own: OpRows, axis: str, holes: Array) -> Iterator[tuple[int, str]]:
    """(curves, text) for each value of an axis that curves lack."""
    at = own.op.op.fields.index(axis)
    values = own.op.rows.values[at]
    codes, counts = np.unique(own.op.rows.codes[at][holes], return_counts=True)
    for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
        yield count, f"{axis}={values[code]} is missing on {count} curves"


def _finding(own: OpRows, message: str, count: int, examples: tuple[str, ...]) -> Finding:
    advice = "see failures.parquet for their causes; measured again: python -m opatlas retry --case"
    return Finding(NAME, ADVISORY, own.table, message, advice, f"op={own.op.op.name}", count, examples)
