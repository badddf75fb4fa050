"""custom_allreduce for planning and tables: sweep, work and published columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from opatlas.catalogue.models import Model
from opatlas.catalogue.reading import sizes
from opatlas.config.document import Section
from opatlas.ops.custom_allreduce.case import Case
from opatlas.ops.dtypes import element_bytes
from opatlas.ops.spec import GRID, Batch, Columns, Op, Precision, Table, Work, field_column


class Grid(NamedTuple):
    gpus: list[int]
    elements: list[int]


def read_grid(section: Section) -> Grid:
    return Grid(sizes(section, "gpus", minimum=2), sizes(section, "elements"))


def expand(grid: Grid, models: Sequence[Model], precisions: Sequence[Precision]) -> Iterator[Batch]:
    heads = [(precision["dtype"], precision["mode"]) for precision in precisions]
    yield Batch(GRID, heads, list(product(grid.gpus, grid.elements)))


def work(c: Columns) -> Work:
    """A message is read and written once; links bound it, not memory."""
    moved = 2.0 * c["elements"] * element_bytes(c["dtype"])
    return Work(0.0 * moved, 0.0 * moved, 0.0 * moved, moved)


OP = Op(
    name="custom_allreduce",
    case=Case,
    build=("dtype", "mode", "gpus"),
    read_grid=read_grid,
    expand=expand,
    work=work,
    table=Table(
        name="custom_allreduce_perf",
        family="comm",
        op_name="all_reduce",
        columns=(
            field_column("allreduce_dtype", "string", "dtype"),
            field_column("num_gpus", "int64", "gpus"),
            field_column("message_size", "int64", "elements"),
            field_column("backend", "string", "mode"),
        ),
        key=("num_gpus", "message_size", "backend"),
    ),
    precision=("dtype", "mode"),
)
