"""No two rows of a table agree in all columns of its key."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.compute as pc

from opatlas.checks.evidence import Evidence
from opatlas.checks.finding import BLOCKING, Finding, some
from opatlas.tables.merge import by_table
from opatlas.tables.schema import table_key


def check(evidence: Evidence) -> Iterator[Finding]:
    for name, ops in by_table(evidence.planned).items():
        if name not in evidence.tables:
            continue
        key = table_key(ops[0].op)
        groups = evidence.tables[name].group_by(list(key)).aggregate([([], "count_all")])
        twice = groups.filter(pc.greater(groups["count_all"], 1)).sort_by([(k, "ascending") for k in key])
        if twice.num_rows:
            found = (", ".join(f"{column}={row[column]}" for column in key) for row in twice.to_pylist())
            message = "rows share one table key"
            advice = "the plan must tell them apart: give the table's key another column"
            yield Finding("keys", BLOCKING, name, message, advice, " ".join(key), twice.num_rows, some(found))
