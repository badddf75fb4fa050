"""Values that can be: times finite and positive, sizes of 32 bit, power null rather than zero."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pandera

from opatlas.checks.evidence import Evidence, OpRows
from opatlas.checks.finding import BLOCKING, Finding, some
from opatlas.measuring.measurement import STOP_REASONS
from opatlas.ops.spec import Op
from opatlas.tables.schema import FURTHER

ADVICE = "measure them again: python -m opatlas retry --case"
# Consumers read sizes as 32-bit, and those of messages as 64-bit numbers.
SIZES, WIDE = 2**32, ("message_size",)

Rule = tuple[str, Callable[[pd.Series], Any]]


def _finite(least: float, or_equal: bool, values: pd.Series) -> Any:
    numbers = values.to_numpy(dtype=float, na_value=np.nan)
    good = np.isfinite(numbers) & ((numbers >= least) if or_equal else (numbers > least))
    return pd.Series(good, values.index)


ABOVE_ZERO: Rule = ("must be a finite number above zero", partial(_finite, 0, False))
AT_LEAST_ZERO: Rule = ("must be a finite number, at least zero", partial(_finite, 0, True))
AT_LEAST_ONE: Rule = ("must be at least 1", lambda values: values >= 1)
SIZE: Rule = ("must fit 32 bit, without a sign", lambda values: (values >= 0) & (values < SIZES))
REASON: Rule = (f"must be one of {', '.join(STOP_REASONS)}", lambda values: values.isin(STOP_REASONS))
FURTHER_RULES = {
    "latency_mad": AT_LEAST_ZERO,
    "latency_ci": AT_LEAST_ZERO,
    "samples": AT_LEAST_ONE,
    "stop_reason": REASON,
    "sm_clock_mhz": ABOVE_ZERO,
    "power_w": ABOVE_ZERO,
    "latency_sustained": ABOVE_ZERO,
    "sm_clock_sustained_mhz": ABOVE_ZERO,
}
NULLABLE = {column.name for column in FURTHER if column.nullable}


def rules(op: Op) -> dict[str, Rule]:
    """Column -> the rule of its values."""
    sizes = {column.name: SIZE for column in op.table.columns if column.type == "int64"}
    times = {name: AT_LEAST_ZERO if op.zero else ABOVE_ZERO for name, _ in op.table.measured}
    return {name: rule for name, rule in sizes.items() if name not in WIDE} | times | FURTHER_RULES


def check(evidence: Evidence) -> Iterator[Finding]:
    for own in evidence.ops:
        yield from _op(own)


def _op(own: OpRows) -> Iterator[Finding]:
    own_rules = rules(own.op.op)
    columns = {
        name: pandera.Column(
            checks=pandera.Check(test, error=text, ignore_na=name in NULLABLE), nullable=True
        )
        for name, (text, test) in own_rules.items()
    }
    rows = own.rows.select(list(columns)).to_pandas(types_mapper=pd.ArrowDtype)
    try:
        pandera.DataFrameSchema(columns).validate(rows, lazy=True)
    except pandera.errors.SchemaErrors as error:
        wrong = error.failure_cases
        for name, found in wrong.groupby("column", sort=False):
            chosen = np.zeros(own.rows.num_rows, bool)
            chosen[found["index"].to_numpy(int)] = True
            cases = own.ids(chosen)
            message = f"{name} {own_rules[name][0]}"
            yield Finding("values", BLOCKING, own.table, message, ADVICE, name, len(cases), some(cases))
