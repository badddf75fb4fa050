"""gemm for planning and tables: sweep, work and published columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

from opatlas.catalogue.models import Model
from opatlas.config.document import Section
from opatlas.ops.dtypes import element_bytes
from opatlas.ops.gemm.case import Case
from opatlas.ops.spec import GRID, Columns, Op, Precision, Table, Work, field_column


class Grid(NamedTuple):
    tokens: list[int]
    features: list[int]
    drop_pairs: set[tuple[int, int]]


def read_grid(section: Section) -> Grid:
    pairs = set()
    for pair in section.records("drop_pairs"):
        pairs.add((pair.integer("n", minimum=1), pair.integer("k", minimum=1)))
        pair.done()
    return Grid(section.integers("tokens"), section.integers("features"), pairs)


def expand(
    grid: Grid, models: Sequence[Model], precisions: Sequence[Precision]
) -> Iterator[tuple[str, Iterable[Case]]]:
    """The square sweep of feature sizes, then the widths of each model, over all token counts."""
    pairs = [pair for pair in product(grid.features, grid.features) if pair not in grid.drop_pairs]
    for precision in precisions:
        dtype = precision["dtype"]
        yield GRID, [Case(dtype, m, n, k) for n, k in pairs for m in grid.tokens]
        for model in models:
            for widths in model.facts.get("gemm", ()):
                sizes = product(widths.n, widths.k, grid.tokens)
                yield model.name, [Case(dtype, m, n, k) for n, k, m in sizes]


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
