"""What compute_scale and scale_matrix share: one sweep over activations, work, table columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from opatlas.catalogue.models import Model
from opatlas.catalogue.reading import sizes
from opatlas.config.document import Section
from opatlas.ops.quantize_case import QuantizeCase
from opatlas.ops.spec import GRID, Batch, Columns, Op, Precision, Table, Work, field_column


class Grid(NamedTuple):
    m: list[int]
    k: list[int]


def quantize_op(name: str, table: str, zero: bool = False, difference: tuple[str, ...] = ()) -> Op:
    return Op(
        name=name,
        case=QuantizeCase,
        build=("dtype", "k"),
        read_grid=_read_grid,
        expand=_expand,
        work=_work,
        table=Table(
            name=table,
            family="quantize",
            op_name=name,
            columns=(
                field_column("m", "int64"),
                field_column("k", "int64"),
                field_column("quant_dtype", "string", "dtype"),
            ),
            key=("quant_dtype", "m", "k"),
            difference=difference,
        ),
        sweep="quantize",
        zero=zero,
    )


def _read_grid(section: Section) -> Grid:
    return Grid(sizes(section, "m"), sizes(section, "k"))


def _expand(grid: Grid, models: Sequence[Model], precisions: Sequence[Precision]) -> Iterator[Batch]:
    heads = [(precision["dtype"], m) for precision in precisions for m in grid.m]
    yield Batch(GRID, heads, [(k,) for k in grid.k])


def _work(c: Columns) -> Work:
    """Activations may still be in a cache, so none of their bytes must cross memory."""
    values = 1.0 * c["m"] * c["k"]
    return Work(0.0 * values, 0.0 * values, 0.0 * values, activation_bytes=3 * values)
