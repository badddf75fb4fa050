"""What planning and tables need to know of an op. Each room's `op.py` fills one `Op`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opatlas.catalogue.models import Model
from opatlas.config.document import Section

Array = npt.NDArray[Any]
# One array per case field, all of one length.
Columns = Mapping[str, Array]
# Field values of one declared precision, as {"dtype": "fp8"}.
Precision = Mapping[str, str]
# The owner of the cases of an op's own sweep grid.
GRID = "grid"


@dataclass(frozen=True)
class Work:
    """What one call of each case does: FLOP, and bytes that must cross memory.

    `certain` is the share of it that every run of a case does; less than 1 where data decide, as in
    which experts a rank's tokens go to.
    """

    flops: Array
    weight_bytes: Array
    kv_bytes: Array
    activation_bytes: Array
    certain: Array | float = 1.0

    @property
    def moved_bytes(self) -> Array:
        """Bytes that cannot be warm in a cache: weights and KV."""
        return self.weight_bytes + self.kv_bytes


@dataclass(frozen=True)
class Column:
    """A column of a table beside the common prefix: its name, Arrow type and where its values come from.

    `values` computes them from the case fields, or None where each row of a case brings its own. `field`
    says that equal values mean an equal field, as in a column that is that field.
    """

    name: str
    type: str
    values: Callable[[Columns], Array] | None = None
    field: str | None = None


def field_column(name: str, type: str, source: str | None = None) -> Column:
    """A column that is a case field, under another name where `source` says so."""
    field = source or name
    return Column(name, type, lambda columns: columns[field], field)


def constant_column(name: str, type: str, value: Any) -> Column:
    return Column(name, type, lambda columns: np.full(len(next(iter(columns.values()))), value))


def row_column(name: str, type: str, source: str | None = None) -> Column:
    """A column that tells the rows of one case apart; each row brings its value.

    `source` is the case field that the value depends on too.
    """
    return Column(name, type, None, source)


@dataclass(frozen=True)
class Table:
    """A published perf table.

    `columns` follow the common prefix (framework, version, device, op_name, kernel_source), `key` names
    the lookup keys and axes. `op_name` fills the column of that name unless `columns` has it.
    `measured` are the columns a measurement fills and their unit, in the order a row brings them.
    A table without `prefix` starts at its own columns. Where a latency may be the difference of two
    timings, `difference` names the columns of both, in ms; they are null in rows that were timed as one.
    """

    name: str
    family: str
    op_name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    measured: tuple[tuple[str, str], ...] = (("latency", "ms"),)
    prefix: bool = True
    difference: tuple[str, ...] = ()

    def key_values(self, columns: Columns) -> list[Array]:
        """One array for each column of the key that the case decides, also where the row adds to it."""
        arrays = []
        for column in self.columns:
            if column.name in self.key:
                if column.values:
                    arrays.append(column.values(columns))
                elif column.field:
                    arrays.append(columns[column.field])
        return arrays


class Batch(NamedTuple):
    """Cases that one owner wants, as a product: every one of `heads` with every one of `points`.

    A head holds values of a case's first fields, a point those of the fields behind them. `tail` are the
    values of the fields that are left, as far as they are not the defaults. The owner is a model's name,
    or GRID.
    """

    owner: str
    heads: Sequence[tuple[Any, ...]]
    points: Sequence[tuple[Any, ...]]
    tail: tuple[Any, ...] = ()


Expansion = Callable[[Any, Sequence[Model], Sequence[Precision]], Iterator[Batch]]


@dataclass(frozen=True)
class Op:
    """One kind of work.

    `read_grid` reads the file of cases/ops that `sweep` names, the op's own by default.
    `expand(grid, models, precisions)` yields what the sweep and each model want. `precision` are the
    fields that a backend declares values of. `build` names the fields that cases must share to be
    measured with one constructed module. `dtype` is the field whose value selects the roofline's FLOP
    ceiling and the rows of a summary. A case yields `rows` rows (0: as many as the runtime has
    components), and `zero` says that a latency of zero is a legal value.
    """

    name: str
    case: type
    build: tuple[str, ...]
    read_grid: Callable[[Section], Any]
    expand: Expansion
    work: Callable[[Columns], Work]
    table: Table
    precision: tuple[str, ...] = ("dtype",)
    dtype: str = "dtype"
    sweep: str = ""
    rows: int = 1
    zero: bool = False

    @property
    def fields(self) -> tuple[str, ...]:
        return self.case._fields  # type: ignore[attr-defined, no-any-return]

    def columns(self, cases: Sequence[Any]) -> Columns:
        """Cases turned into one array per field."""
        values = zip(*cases, strict=True) if cases else [()] * len(self.fields)
        return {
            field: np.array(column, dtype=object if column and isinstance(column[0], str) else None)
            for field, column in zip(self.fields, values, strict=True)
        }


@cache
def load_op(name: str) -> Op:
    """The Op of a room; ModuleNotFoundError when there is none of this name."""
    op = importlib.import_module(f"opatlas.ops.{name}.op").OP
    assert isinstance(op, Op)
    return op


@cache
def op_names() -> tuple[str, ...]:
    """Every op that has a room, in alphabetical order."""
    return tuple(sorted(path.parent.name for path in Path(__file__).parent.glob("*/op.py")))
