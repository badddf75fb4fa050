"""One table of both sides: rows that answer the same lookup, paired by the table's key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opatlas.baseline.side import Side
from opatlas.ops.spec import Array, Op

PLACE, NEW, OLD = "#place", "#new", "#old"
KERNEL, OP_NAME = "kernel_source", "op_name"


@dataclass(frozen=True)
class Label:
    """What rows are grouped by beside their size."""

    op: str
    dtype: str


@dataclass(frozen=True)
class Pairs:
    """Row numbers: `new` and `old` of the pairs, and of the rows that one side alone has.

    `repeated` are the numbers of rows, new and old, left out because an earlier row of their table has
    their key: so do consumers read such tables.
    """

    key: tuple[str, ...]
    new: Array
    old: Array
    gained: Array
    lost: Array
    repeated: tuple[int, int]


@dataclass(frozen=True)
class Matched:
    """A table of both sides and its pairs; `ops` are those whose rows it holds."""

    name: str
    ops: Sequence[Op]
    new: pa.Table
    old: pa.Table
    pairs: Pairs

    def labels(self, table: pa.Table, rows: Array) -> tuple[Array, list[Label]]:
        """The number of each row's label, and the labels."""
        by_name = {op.table.op_name: op.name for op in self.ops}
        dtypes = {c.name for op in self.ops for c in op.table.columns if c.field in op.precision}
        columns = [name for name in table.column_names if name in dtypes]
        if len(by_name) > 1 and OP_NAME in table.column_names:
            columns = [OP_NAME, *columns]
        if not columns:
            return np.zeros(len(rows), np.int64), [Label(self.ops[0].name, "")]
        codes, kinds = _kinds(table.select(columns).take(pa.array(rows)))
        labels = []
        for kind in kinds.to_pylist():
            name = kind.pop(OP_NAME, self.ops[0].table.op_name)
            labels.append(
                Label(by_name.get(name, str(name)), "/".join(dict.fromkeys(map(str, kind.values()))))
            )
        return codes, labels


def match_tables(name: str, ops: Sequence[Op], new: Side, old: Side) -> Matched:
    """Reads a table of both sides and pairs its rows; Lacking says why it cannot be."""
    one, other = new.table(name, ops), old.table(name, ops)
    key = ops[0].table.key
    several = len({op.table.op_name for op in ops}) > 1
    if several and OP_NAME not in key and OP_NAME in one.column_names and OP_NAME in other.column_names:
        key = (*key, OP_NAME)
    return Matched(name, ops, one, other, match(one, other, key))


def match(new: pa.Table, old: pa.Table, key: tuple[str, ...]) -> Pairs:
    """Pairs rows by `key`; where rows of several kernels share a key, by kernel_source too."""
    firsts = _firsts(new, key), _firsts(old, key)
    doubled = len(firsts[0]) < new.num_rows or len(firsts[1]) < old.num_rows
    if doubled and KERNEL not in key and KERNEL in new.column_names and KERNEL in old.column_names:
        key = (*key, KERNEL)
        firsts = _firsts(new, key), _firsts(old, key)
    numbered = new.select(list(key)).take(firsts[0]).append_column(NEW, firsts[0])
    others = old.select(list(key)).take(firsts[1]).append_column(OLD, firsts[1])
    joined = numbered.join(others, list(key), join_type="full outer")
    new_rows, old_rows = (joined[name].combine_chunks().fill_null(-1).to_numpy() for name in (NEW, OLD))
    both = (new_rows >= 0) & (old_rows >= 0)
    order = np.argsort(new_rows[both], kind="stable")
    return Pairs(
        key,
        new_rows[both][order],
        old_rows[both][order],
        np.sort(new_rows[old_rows < 0]),
        np.sort(old_rows[new_rows < 0]),
        (new.num_rows - len(firsts[0]), old.num_rows - len(firsts[1])),
    )


def _firsts(table: pa.Table, key: tuple[str, ...]) -> pa.Array:
    """The number of the first row of each key, ascending."""
    rows = table.select(list(key)).append_column(PLACE, pa.array(np.arange(table.num_rows)))
    firsts = rows.group_by(list(key)).aggregate([(PLACE, "min")])[f"{PLACE}_min"]
    return pa.array(np.sort(firsts.to_numpy()))


def _kinds(table: pa.Table) -> tuple[Array, pa.Table]:
    """The number of each row's combination of values, and the combinations in ascending order."""
    kinds = table.group_by(table.column_names).aggregate([])
    kinds = kinds.sort_by([(name, "ascending") for name in table.column_names])
    codes = pc.index_in(_texts(table), value_set=_texts(kinds))
    return codes.to_numpy(), kinds


def _texts(table: pa.Table) -> pa.Array:
    parts = [pc.fill_null(column.combine_chunks().cast(pa.string()), "") for column in table.columns]
    return pc.binary_join_element_wise(*parts, "\x1f")
