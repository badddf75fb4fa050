"""Precisions that should differ in time do: where they don't, a label or a kernel is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from opatlas.checks.evidence import Evidence, OpRows
from opatlas.checks.finding import ADVISORY, EXAMPLES, Finding, some
from opatlas.config.checks import Dtypes
from opatlas.ops.spec import Array
from opatlas.planning.rows import combined

# Work that differs less than this between two precisions tells nothing of their labels.
APART = 0.75
# Share of a build's pairs that are alike where a label is wrong.
MOST = 0.8


def check(evidence: Evidence) -> Iterator[Finding]:
    # A CPU has no units of its own for the smaller formats.
    if evidence.planned.dataset.platform.sm is None:
        return
    limits = evidence.planned.config.settings.checks.dtypes
    for own in evidence.ops:
        if own.latency_ms is None or own.op.op.rows != 1:
            continue
        point = _key(own, {*own.op.op.precision, "dispatch"})
        for (one, mine), (two, others) in combinations(own.precisions(), 2):
            left, right = _pairs(point, mine, others)
            yield from _alike(own, own.latency_ms, left, right, f"{one} and {two}", limits)


def _key(own: OpRows, without: set[str]) -> Array:
    """A number for each row, equal for equal values of all other fields."""
    at = [index for index, name in enumerate(own.op.op.fields) if name not in without]
    codes = [own.op.rows.codes[index][own.place] for index in at]
    return combined(codes, [len(own.op.rows.values[index]) for index in at])


def _pairs(point: Array, mine: Array, others: Array) -> tuple[Array, Array]:
    """The rows of two precisions at the same points."""
    one, two = np.flatnonzero(mine), np.flatnonzero(others)
    _, left, right = np.intersect1d(point[one], point[two], return_indices=True)
    return one[left], two[right]


def _alike(
    own: OpRows, latency: Array, left: Array, right: Array, kinds: str, limits: Dtypes
) -> Iterator[Finding]:
    work = np.array([own.work_ms[left], own.work_ms[right]])
    apart = (work.min(axis=0) >= limits.work_ms) & (work.min(axis=0) <= APART * work.max(axis=0))
    left, right = left[apart], right[apart]
    if not len(left):
        return
    alike = np.abs(latency[left] / latency[right] - 1) <= limits.tolerance
    fields = set(own.op.op.fields) - (set(own.op.op.build) - {*own.op.op.precision, "dispatch"})
    _, build = np.unique(_key(own, fields)[left], return_inverse=True)
    pairs, same = np.bincount(build), np.bincount(build, alike)
    strange = (pairs >= limits.pairs) & (same >= MOST * pairs)
    chosen = strange[build] & alike
    if chosen.any():
        examples = some(
            f"{own.id(one)}: {latency[one]:.3g} ms, {own.id(two)}: {latency[two]:.3g} ms"
            for one, two in zip(left[chosen][:EXAMPLES], right[chosen][:EXAMPLES], strict=True)
        )
        message = f"{kinds} take the same time where their work differs"
        advice = "see which kernels ran (provenance.json, kernels): a label or the kernel is wrong"
        count = int(chosen.sum())
        yield Finding("dtypes", ADVISORY, own.table, message, advice, f"kinds={kinds}", count, examples)
