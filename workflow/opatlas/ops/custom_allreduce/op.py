"""custom_allreduce for planning and tables: sweep and published columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opatlas.catalogue.models import Model
from opatlas.ops.collective import Messages, message_work, read_messages
from opatlas.ops.custom_allreduce.case import Case
from opatlas.ops.spec import GRID, Batch, Op, Precision, Table, field_column


def expand(grid: Messages, models: Sequence[Model], precisions: Sequence[Precision]) -> Iterator[Batch]:
    yield Batch(GRID, [(precision["dtype"], precision["mode"]) for precision in precisions], grid.points())


OP = Op(
    name="custom_allreduce",
    case=Case,
    build=("dtype", "mode", "gpus"),
    read_grid=read_messages,
    expand=expand,
    work=message_work,
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
