"""Labels are true: those of the case that was measured, and what cases/labels.yaml says of their facts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opatlas.catalogue.labels import LabelRule
from opatlas.catalogue.matching import Test, test_of
from opatlas.checks.evidence import Evidence, OpRows
from opatlas.checks.finding import BLOCKING, MERGE_AGAIN, Finding, some
from opatlas.ops.spec import Array
from opatlas.tables.labels import published_fields
from opatlas.tables.schema import TYPES

NAME = "labels"
PUT_RIGHT = "measure what the label says, or put it right by an entry in cases/relabels.yaml"


def check(evidence: Evidence) -> Iterator[Finding]:
    labels = evidence.planned.labels
    for own in evidence.ops:
        yield from _planned(evidence, own)
        for rule in labels.rules_of(own.op.op.name, own.op.op.fields):
            yield from _rule(own, rule)
        yield from _heads(own)


def _planned(evidence: Evidence, own: OpRows) -> Iterator[Finding]:
    """Columns that are not those of the rows' cases."""
    fields, _ = published_fields(evidence.planned, own.op)
    for column in own.op.op.table.columns:
        if column.values is None:
            continue
        wanted = pa.array(column.values(fields)[own.place], TYPES[column.type])
        wrong = ~pc.equal(own.rows[column.name], wanted).to_numpy()
        if wrong.any():
            message = f"{column.name} is not that of the case"
            yield _finding(own, message, MERGE_AGAIN, column.name, wrong)


def _rule(own: OpRows, rule: LabelRule) -> Iterator[Finding]:
    concerned = np.ones(own.rows.num_rows, bool)
    for field, test in rule.match.tests():
        concerned &= _holds(own, field, test)
    if rule.kernels is not None:
        codes, names = own.codes("kernel_source")
        concerned &= np.isin(codes, [code for code, name in enumerate(names) if name in rule.kernels])
    for field, condition in rule.must.items():
        wrong = concerned & ~_holds(own, field, test_of(condition))
        if wrong.any():
            message = f"{_column(own, field) or field} must be {_text(condition)}: {rule.reason}"
            yield _finding(own, f"{message} ({rule.match.label})", PUT_RIGHT, field, wrong)


def _holds(own: OpRows, field: str, test: Test) -> Array:
    """For each row whether its label, or where none is published its case's field, passes a test."""
    if name := _column(own, field):
        codes, values = own.codes(name)
    else:
        at = own.op.op.fields.index(field)
        codes, values = own.op.rows.codes[at][own.place], list(own.op.rows.values[at])
    passed: Array = np.array([test(value) for value in values], bool)[codes] if values else codes == 0
    return passed


def _column(own: OpRows, field: str) -> str | None:
    """The column that publishes a field as it is."""
    named = (column.name for column in own.op.op.table.columns if column.values and column.field == field)
    return next(named, None)


def _heads(own: OpRows) -> Iterator[Finding]:
    """Heads are those of one rank: where they stay as tp grows, they are the model's, an older meaning."""
    columns = ("num_heads", "tp_size")
    if not all(column in own.rows.column_names for column in columns) or "tp" not in own.op.op.fields:
        return
    by = [column for column in ("model", *columns) if column in own.rows.column_names]
    kinds = own.rows.group_by(by).aggregate([]).to_pylist()
    seen: dict[Any, tuple[set[int], set[int]]] = {}
    for kind in kinds:
        heads, sizes = seen.setdefault(kind.get("model"), (set(), set()))
        heads.add(kind["num_heads"])
        sizes.add(kind["tp_size"])
    for model, (heads, sizes) in seen.items():
        if len(sizes) > 1 and len(heads) == 1:
            message = f"num_heads of {model} is {min(heads)} at every tp_size: it must be that of one rank"
            advice = "divide it by tp_size: rows of an older meaning are migrated before they are merged"
            yield Finding(NAME, BLOCKING, own.table, message, advice, f"model={model}", len(sizes), ())


def _text(condition: Any) -> str:
    if isinstance(condition, dict):
        return ", ".join(f"{name} {value}" for name, value in condition.items())
    return " or ".join(map(str, condition)) if isinstance(condition, list) else str(condition)


def _finding(own: OpRows, message: str, advice: str, column: str, chosen: Array) -> Finding:
    cases = own.ids(chosen)
    return Finding(NAME, BLOCKING, own.table, message, advice, column, len(cases), some(cases))
