"""nccl for planning and tables: sweep and published columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from opatlas.catalogue.models import Model
from opatlas.config.document import Section
from opatlas.ops.collective import Messages, message_work, read_messages
from opatlas.ops.nccl.case import Case
from opatlas.ops.spec import GRID, Batch, Op, Precision, Table, field_column


class Grid(NamedTuple):
    collectives: list[str]
    messages: Messages


def read_grid(section: Section) -> Grid:
    return Grid(section.texts("collectives"), read_messages(section))


def expand(grid: Grid, models: Sequence[Model], precisions: Sequence[Precision]) -> Iterator[Batch]:
    heads = list(product((precision["dtype"] for precision in precisions), grid.collectives))
    yield Batch(GRID, heads, grid.messages.points())


OP = Op(
    name="nccl",
    case=Case,
    build=("dtype", "collective", "gpus"),
    read_grid=read_grid,
    expand=expand,
    work=message_work,
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
