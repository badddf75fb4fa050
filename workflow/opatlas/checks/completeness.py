"""Each planned case is in the dataset once: with all of its rows, or as a failure."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from opatlas.checks.evidence import Evidence, OpRows
from opatlas.checks.finding import ADVISORY, BLOCKING, MERGE_AGAIN, Finding, some
from opatlas.ops.spec import Array

NAME = "completeness"


def check(evidence: Evidence) -> Iterator[Finding]:
    ops = evidence.planned.plan.ops
    if not evidence.planned.shards:
        yield Finding(NAME, BLOCKING, "", "nothing was measured", "none of the planned ops has a runner")
    for op in (op for op in ops if not op.runner and len(op.rows)):
        message = f"{op.op.name} is planned and has no runner"
        advice = "its rows are missing until the backend has one"
        selector = f"op={op.op.name}"
        yield Finding(NAME, ADVISORY, op.op.table.name, message, advice, selector, len(op.rows))
    for own in evidence.ops:
        yield from _op(own)
    for name, table in {**evidence.tables, "failures": evidence.failures}.items():
        strange = set(table["case_id"].to_pylist()) if _strangers(evidence, name, table) else set()
        strange -= {case_id for op in ops for case_id in op.ids}
        if strange:
            yield _finding(name, "rows are of cases that are not planned", sorted(strange))


def _strangers(evidence: Evidence, name: str, table: pa.Table) -> bool:
    """Whether a table has rows of no planned case."""
    if name == "failures":
        known = sum(len(own.failed) for own in evidence.ops)
    else:
        known = sum(len(own.place) for own in evidence.ops if own.table == name)
    return bool(table.num_rows != known)


def _op(own: OpRows) -> Iterator[Finding]:
    wanted = own.op.op.rows
    rows = np.bincount(own.place, minlength=len(own.op.rows))
    failed = np.bincount(own.failed, minlength=len(own.op.rows))

    def report(what: str, chosen: Array) -> Iterator[Finding]:
        if chosen.any():
            cases = [own.op.ids[index] for index in np.flatnonzero(chosen)]
            yield _finding(own.table, what, cases)

    yield from report("planned cases have neither row nor failure", (rows == 0) & (failed == 0))
    yield from report("cases have both rows and a failure", (rows > 0) & (failed > 0))
    yield from report("cases have more than one failure", failed > 1)
    if wanted:
        message = f"cases have another number of rows than {wanted}"
        yield from report(message, (rows > 0) & (rows != wanted))


def _finding(table: str, message: str, cases: list[str]) -> Finding:
    return Finding(NAME, BLOCKING, table, message, MERGE_AGAIN, "case_id", len(cases), some(cases))
