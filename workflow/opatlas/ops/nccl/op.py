"""nccl for planning and tables: sweep, work and published columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from opatlas.catalogue.models import Model
from opatlas.catalogue.reading import sizes
from opatlas.config.document import Section
from opatlas.ops.dtypes import element_bytes
from opatlas.ops.nccl.case import Case
from opatlas.ops.spec import GRID, Batch, Columns, Op, Precision, Table, Work, field_column


class Grid(NamedTuple):
    collectives: list[str]
    gpus: list[int]
    elements: list[int]


def read_grid(section: Section) -> Grid:
    return Grid(section.texts("collectives"), sizes(section, "gpus", minimum=2), sizes(section, "elements"))


def expand(grid: Grid, models: Sequence[Model], precisions: Sequence[Precision]) -> Iterator[Batch]:
    heads = [(precision["dtype"], collective) for precision in precisions for collective in grid.collectives]
    yield Batch(GRID, heads, list(product(grid.gpus, grid.elements)))


def work(c: Columns) -> Work:
    """A message is read and written once; links bound it, not memory."""
    moved = 2.0 * c["elements"] * element_bytes(c["dtype"])
    return Work(0.0 * moved, 0.0 * moved, 0.0 * moved, moved)


OP = Op(
    name="nccl",
    case=Case,
    build=("dtype", "collective", "gpus"),
    read_grid=read_grid,
    expand=expand,
    work=work,
    table=Table(
        name="nccl_perf",
        family="comm",
        op_name="nccl",
        columns=(
            field_column("op_name", "string", "collective"),
            field_column("nccl_dtype", "string", "dtype"),
            field_column("num_gpus", "int64", "gpus"),
            field_column("message_size", "int64", "elements"),
        ),
        key=("nccl_dtype", "op_name", "num_gpus", "message_size"),
    ),
)
