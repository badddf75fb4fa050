"""Cases of one op as columns of small codes: what makes planning hundreds of thousands of cases quick."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from opatlas.ops.spec import Batch, Columns, Op

Codes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
# Keys stay below this, so that they fit an int64.
KEY_LIMIT = 2**62


class Rows:
    """For each field of an op's Case its distinct values in ascending order, and a code per case."""

    def __init__(self, op: Op, values: Sequence[Sequence[Any]], codes: Sequence[Codes]) -> None:
        self.op = op
        self.values = values
        self.codes = codes

    @classmethod
    def of(cls, op: Op, batches: Sequence[Batch]) -> Rows:
        """Every case of every batch, in their order."""
        if not any(batch.heads and batch.points for batch in batches):
            return cls(op, [[] for _ in op.fields], [np.zeros(0, np.int64) for _ in op.fields])
        heads, points, tails = _numbered(batches)
        parts: list[tuple[list[tuple[Any, ...]], Codes]] = [
            ([head for batch in batches for head in batch.heads], heads),
            ([point for batch in batches for point in batch.points], points),
            ([batch.tail for batch in batches], tails),
        ]
        values, codes = [], []
        for content, index in parts:
            for column in zip(*content, strict=True):
                distinct = sorted(set(column))
                code = {value: number for number, value in enumerate(distinct)}
                values.append(distinct)
                codes.append(np.array([code[value] for value in column], np.int64)[index])
        for name in op.fields[len(values) :]:
            values.append([op.case._field_defaults[name]])  # type: ignore[attr-defined]
            codes.append(np.zeros(len(heads), np.int64))
        return cls(op, values, codes)

    def __len__(self) -> int:
        return len(self.codes[0])

    def take(self, index: Any) -> Rows:
        """The rows at these positions, or where a mask holds."""
        return Rows(self.op, self.values, [codes[index] for codes in self.codes])

    def replace(self, field: str, values: Sequence[Any], codes: Codes) -> Rows:
        """The same rows with another column; `values` ascend."""
        at = self.op.fields.index(field)
        new_values, new_codes = list(self.values), list(self.codes)
        new_values[at], new_codes[at] = values, codes
        return Rows(self.op, new_values, new_codes)

    def where(self, field: str, test: Callable[[Any], bool]) -> Mask:
        """Which rows pass a test of one field."""
        at = self.op.fields.index(field)
        passed = np.array([test(value) for value in self.values[at]], np.bool_)
        return passed[self.codes[at]] if len(passed) else np.zeros(len(self), np.bool_)

    def passing(self, tests: Sequence[tuple[str, Callable[[Any], bool]]]) -> Mask:
        """Which rows pass every (field, test)."""
        passed = np.ones(len(self), np.bool_)
        for field, test in tests:
            passed &= self.where(field, test)
        return passed

    def varying(self) -> list[str]:
        """The fields that have more than one value."""
        return [field for field, values in zip(self.op.fields, self.values, strict=True) if len(values) > 1]

    def keys(self) -> Codes:
        """One number per row, equal for equal cases and in the order of their fields."""
        return combined(list(self.codes), [len(values) for values in self.values])

    def cases(self) -> list[Any]:
        columns = [
            map(values.__getitem__, codes.tolist())
            for values, codes in zip(self.values, self.codes, strict=True)
        ]
        return list(map(self.op.case._make, zip(*columns, strict=True)))  # type: ignore[attr-defined]

    def ids(self) -> list[str]:
        """Case ids, as `ops.ids` writes them."""
        defaults = self.op.case._field_defaults  # type: ignore[attr-defined]
        columns = [[self.op.name] * len(self)]
        for field, values, codes in zip(self.op.fields, self.values, self.codes, strict=True):
            texts = ["" if value == defaults.get(field) else f"/{field}={value}" for value in values]
            if any(texts):
                columns.append(list(map(texts.__getitem__, codes.tolist())))
        return list(map("".join, zip(*columns, strict=True)))

    def columns(self) -> Columns:
        """One array per field."""
        return {
            field: np.array(values, dtype=object if values and isinstance(values[0], str) else None)[codes]
            for field, values, codes in zip(self.op.fields, self.values, self.codes, strict=True)
        }


def combined(codes: Sequence[Codes], sizes: Sequence[int]) -> Codes:
    """Several code columns as one number per row, in the columns' order."""
    key: Codes = np.zeros(len(codes[0]), np.int64)
    size = 1
    for column, distinct in zip(codes, sizes, strict=True):
        if size * max(distinct, 1) > KEY_LIMIT:
            ranks, key = np.unique(key, return_inverse=True)
            size = len(ranks)
        key = key * max(distinct, 1) + column
        size *= max(distinct, 1)
    return key


def _numbered(batches: Sequence[Batch]) -> tuple[Codes, Codes, Codes]:
    """For each case of each batch the number of its head, of its point and of its batch, counted over all."""
    heads, points, tails = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    head, point = 0, 0
    for number, batch in enumerate(batches):
        own_heads, own_points = len(batch.heads), len(batch.points)
        heads.append(np.repeat(np.arange(head, head + own_heads), own_points))
        points.append(np.tile(np.arange(point, point + own_points), own_heads))
        tails.append(np.full(own_heads * own_points, number))
        head, point = head + own_heads, point + own_points
    return np.concatenate(heads), np.concatenate(points), np.concatenate(tails)
