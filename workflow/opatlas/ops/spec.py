"""What planning and tables need to know of an op. Each room's `op.py` fills one `Op`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

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
    """What one call of each case does: FLOP, and bytes that must cross memory."""

    flops: Array
    weight_bytes: Array
    kv_bytes: Array
    activation_bytes: Array

    @property
    def moved_bytes(self) -> Array:
        """Bytes that cannot be warm in a cache: weights and KV."""
        return self.weight_bytes + self.kv_bytes


@dataclass(frozen=True)
class Column:
    """A case-dependent column of a table: its name, Arrow type and values for given case fields."""

    name: str
    type: str
    values: Callable[[Columns], Array]


def field_column(name: str, type: str, source: str | None = None) -> Column:
    """A column that is a case field, under another name where `source` says so."""
    field = source or name
    return Column(name, type, lambda columns: columns[field])


def constant_column(name: str, type: str, value: Any) -> Column:
    return Column(name, type, lambda columns: np.full(len(next(iter(columns.values()))), value))


@dataclass(frozen=True)
class Table:
    """A published perf table: `columns` follow the common prefix, `key` names the lookup keys and axes."""

    name: str
    family: str
    op_name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]


Expansion = Callable[[Any, Sequence[Model], Sequence[Precision]], Iterator[tuple[str, Iterable[Any]]]]


@dataclass(frozen=True)
class Op:
    """One kind of work.

    `read_grid` reads cases/ops/<name>.yaml. `expand(grid, models, precisions)` yields batches
    (owner, cases), where the owner is a model's name or GRID. `build` names the fields that cases
    must share to be measured with one constructed module. `dtype` is the field whose value selects
    the roofline's FLOP ceiling and the rows of a summary.
    """

    name: str
    case: type
    build: tuple[str, ...]
    read_grid: Callable[[Section], Any]
    expand: Expansion
    work: Callable[[Columns], Work]
    table: Table
    dtype: str = "dtype"

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
