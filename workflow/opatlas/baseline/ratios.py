"""Ratios of new to old latency: by op, precision and size, and the largest changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa

from opatlas.baseline import answers
from opatlas.baseline.answers import ANSWERS, Ratios
from opatlas.baseline.matching import KERNEL, Label, Matched
from opatlas.ops.spec import Array
from opatlas.tables.merge import PER_MS

# Size bands: how long a call takes, in ms, as the geometric mean of both sides.
BANDS = {
    "under 10 us": 0.01,
    "10 to 100 us": 0.1,
    "0.1 to 1 ms": 1.0,
    "1 to 10 ms": 10.0,
    "over 10 ms": np.inf,
}
LARGEST = 50

Record = dict[str, Any]


class TableRatios:
    """One time of one table, of all pairs in which both sides' is a positive number.

    `apart` says of each op how far two measurements of one case are apart. Where a table has several
    times, the column's name stands behind the op's.
    """

    def __init__(self, matched: Matched, column: str, unit: str, apart: Mapping[str, float]) -> None:
        self.matched = matched
        new, old = (
            side[column].to_numpy()[rows] / PER_MS[unit]
            for side, rows in ((matched.new, matched.pairs.new), (matched.old, matched.pairs.old))
        )
        usable = np.isfinite(new) & np.isfinite(old) & (new > 0) & (old > 0)
        self.unusable = int((~usable).sum())
        self.new, self.old = new[usable], old[usable]
        self.new_rows, self.old_rows = matched.pairs.new[usable], matched.pairs.old[usable]
        self.codes, labels = matched.labels(matched.new, self.new_rows)
        self.labels = [
            label if column == "latency" else Label(f"{label.op} {column}", label.dtype) for label in labels
        ]
        between = np.array([apart.get(label.op, 0.0) for label in labels])[self.codes]
        inside = (
            _relative(matched.new, self.new_rows, self.new),
            _relative(matched.old, self.old_rows, self.old),
        )
        half = np.sqrt(inside[0] ** 2 + inside[1] ** 2 + between**2)
        self.ratios = Ratios(np.log(self.new / self.old), half)
        self.answers = answers.rows(self.ratios)

    def ops(self) -> Iterator[Record]:
        """One entry for each op and precision."""
        for code, label in enumerate(self.labels):
            yield self._entry(label, {}, np.flatnonzero(self.codes == code))

    def groups(self) -> Iterator[Record]:
        """One entry for each op, precision and size band."""
        bands = np.searchsorted(list(BANDS.values()), np.sqrt(self.new * self.old))
        for code, label in enumerate(self.labels):
            for number, band in enumerate(BANDS):
                rows = np.flatnonzero((self.codes == code) & (bands == number))
                if len(rows):
                    yield self._entry(label, {"size": band}, rows)

    def largest(self) -> Iterator[Record]:
        """The pairs that are furthest apart."""
        key = list(self.matched.pairs.key)
        for index in np.argsort(-np.abs(self.ratios.log), kind="stable")[:LARGEST].tolist():
            new = self.matched.new.slice(int(self.new_rows[index]), 1).to_pylist()[0]
            old = self.matched.old.slice(int(self.old_rows[index]), 1).to_pylist()[0]
            yield {
                "table": self.matched.name,
                **asdict(self.labels[self.codes[index]]),
                "key": {column: new[column] for column in key},
                "baseline_ms": float(self.old[index]),
                "ms": float(self.new[index]),
                "ratio": round(float(self.new[index] / self.old[index]), 6),
                "answer": ANSWERS[self.answers[index]],
                "baseline_kernel": old.get(KERNEL),
                "kernel": new.get(KERNEL),
                "case_id": new.get("case_id"),
            }

    def _entry(self, label: Label, size: Mapping[str, str], rows: Array) -> Record:
        found = answers.group(self.ratios.take(rows), self.answers[rows])
        return {"table": self.matched.name, **asdict(label), **size, **found}


def _relative(table: pa.Table, rows: Array, latency: Array) -> Array:
    """Half the 95 % interval of each row's median, as a share of it; NaN where the table states none."""
    if "latency_ci" not in table.column_names:
        return np.full(len(rows), np.nan)
    share: Array = table["latency_ci"].to_numpy()[rows] / latency
    return share
