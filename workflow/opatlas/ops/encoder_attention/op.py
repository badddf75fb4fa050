"""encoder_attention for planning and tables: sweep, work and published columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from opatlas.catalogue.models import Model
from opatlas.catalogue.reading import sizes
from opatlas.config.document import Section
from opatlas.ops.dtypes import element_bytes
from opatlas.ops.encoder_attention.case import Case
from opatlas.ops.spec import GRID, Batch, Columns, Op, Precision, Table, Work, field_column

# Queries, keys, values and outputs, two bytes each.
BYTES_PER_ELEMENT = 4 * 2


class Grid(NamedTuple):
    batch: list[int]
    isl: list[int]
    heads: list[int]
    head_dim: list[int]
    tokens_max: int
    activation_bytes_below: int

    def points(self, heads: int, head_dim: int) -> list[tuple[int, int]]:
        """(batch, isl) within the budgets of tokens and of activations."""
        return [
            (batch, isl)
            for batch in self.batch
            for isl in self.isl
            if batch * isl <= self.tokens_max
            and batch * isl * heads * head_dim * BYTES_PER_ELEMENT < self.activation_bytes_below
        ]


def read_grid(section: Section) -> Grid:
    return Grid(
        sizes(section, "batch"),
        sizes(section, "isl"),
        sizes(section, "heads"),
        sizes(section, "head_dim"),
        section.integer("tokens_max", minimum=1),
        section.integer("activation_bytes_below", minimum=1),
    )


def expand(grid: Grid, models: Sequence[Model], precisions: Sequence[Precision]) -> Iterator[Batch]:
    """Every pair of head count and size, then each model's layers over ranks."""
    shapes = [(GRID, list(product(grid.heads, grid.head_dim)))]
    for model in models:
        for layer in model.facts.get("encoder", ()):
            shapes.append((model.name, [(layer.heads // tp, layer.head_dim) for tp in layer.tp]))
    for owner, own in shapes:
        for shape in own:
            yield Batch(owner, [(p["dtype"], *shape) for p in precisions], grid.points(*shape))


def work(c: Columns) -> Work:
    tokens = 1.0 * c["batch"] * c["isl"]
    return Work(
        flops=4.0 * tokens * c["isl"] * c["heads"] * c["head_dim"],
        weight_bytes=0.0 * tokens,
        kv_bytes=0.0 * tokens,
        activation_bytes=4.0 * tokens * c["heads"] * c["head_dim"] * element_bytes(c["dtype"]),
    )


OP = Op(
    name="encoder_attention",
    case=Case,
    build=("dtype", "heads", "head_dim"),
    read_grid=read_grid,
    expand=expand,
    work=work,
    table=Table(
        name="encoder_attention_perf",
        family="encoder_attention",
        op_name="encoder_attention",
        columns=(
            field_column("batch_size", "int64", "batch"),
            field_column("isl", "int64"),
            field_column("num_heads", "int64", "heads"),
            field_column("head_dim", "int64"),
            field_column("attn_dtype", "string", "dtype"),
        ),
        key=("attn_dtype", "head_dim", "num_heads", "isl", "batch_size"),
    ),
)
