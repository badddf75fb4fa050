"""The curves of a table: rows that differ along one axis alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opatlas.ops.spec import Array
from opatlas.planning.plan import OpPlan
from opatlas.planning.rows import combined

# Case fields along which a call has more tokens or elements to do, and all that consumers interpolate along.
TOKENS = ("m", "tokens", "batch", "isl", "kv_len", "prefix", "query", "seq", "elements")
AXES = (*TOKENS, "n", "k", "heads")


def axes(op: OpPlan, among: tuple[str, ...]) -> Iterator[str]:
    """The axes of an op that have more than one value."""
    return (field for field in op.rows.varying() if field in among)


def along(op: OpPlan, field: str, place: Array, part: Array | None = None) -> tuple[Array, Array]:
    """An order of rows that follows each curve along `field`, and the number of each one's curve.

    `place` are the rows' cases, `part` tells apart the rows of one case.
    """
    at = op.op.fields.index(field)
    others = [index for index in range(len(op.op.fields)) if index != at]
    codes = [op.rows.codes[index][place] for index in others]
    sizes = [len(op.rows.values[index]) for index in others]
    if part is not None:
        codes.append(part.astype(np.int64))
        sizes.append(int(part.max(initial=0)) + 1)
    curve = combined(codes, sizes)
    order = np.lexsort((op.rows.codes[at][place], curve))
    return order, curve[order]
