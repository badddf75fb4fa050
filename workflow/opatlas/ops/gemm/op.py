"""gemm for planning and tables: sweep, work and published columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from opatlas.catalogue.models import Model
from opatlas.catalogue.reading import sizes
from opatlas.config.document import Section
from opatlas.ops.dtypes import element_bytes
from opatlas.ops.gemm.case import Case
from opatlas.ops.spec import GRID, Batch, Columns, Op, Precision, Table, Work, field_column


class Grid(NamedTuple):
    tokens: list[int]
    features: list[int]
    drop_pairs: set[tuple[int, int]]


def read_grid(section: Section) -> Grid:
    pairs = set()
    for pair in section.records("drop_pairs"):
        pairs.add((pair.integer("n", minimum=1), pair.integer("k", minimum=1)))
        pair.done()
    return Grid(sizes(section, "tokens"), sizes(section, "features"), pairs)


def expand(grid: Grid, models: Sequence[Model], precisions: Sequence[Precision]) -> Iterator[Batch]:
    """The square sweep of feature sizes, then the widths of each model, over all token counts."""
    pairs = [pair for pair in product(grid.features, grid.features) if pair not in grid.drop_pairs]
    for precision in precisions:
        heads = [(precision["dtype"], m) for m in grid.tokens]
        yield Batch(GRID, heads, pairs)
        for model in models:
            for widths in model.facts.get("gemm", ()):
                yield Batch(model.name, heads, list(product(widths.n, widths.k)))


def work(c: Columns) -> Work:
    size = element_bytes(c["dtype"])
    return Work(
        flops=2.0 * c["m"] * c["n"] * c["k"],
        weight_bytes=size * c["n"] * c["k"],
        kv_bytes=0.0 * c["m"],
        activation_bytes=size * c["m"] * c["k"] + 2.0 * c["m"] * c["n"],
    )


OP = Op(
    name="gemm",
    case=Case,
    build=("dtype", "n", "k"),
    read_grid=read_grid,
    expand=expand,
    work=work,
    table=Table(
        name="gemm_perf",
        family="gemm",
        op_name="gemm",
        columns=(
            field_column("gemm_dtype", "string", "dtype"),
            field_column("m", "int64"),
            field_column("n", "int64"),
            field_column("k", "int64"),
        ),
        key=("gemm_dtype", "m", "n", "k"),
    ),
)
