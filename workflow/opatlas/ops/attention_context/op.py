"""attention_context for planning and tables: sweep, work and published columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from opatlas.catalogue.models import Model
from opatlas.catalogue.reading import sizes
from opatlas.config.document import Section
from opatlas.ops.attention_context.case import Case
from opatlas.ops.attention_shapes import Shape, attended, kv_heads_column, owned, window_column
from opatlas.ops.dtypes import element_bytes
from opatlas.ops.spec import Batch, Columns, Op, Precision, Table, Work, constant_column, field_column


class Grid(NamedTuple):
    batch: list[int]
    isl: list[int]
    heads: list[int]
    kv_heads: list[int]
    head_dim: int
    mha_tokens: int
    mha_batch: int
    gqa_tokens: int
    kv_elements_below: int


def read_grid(section: Section) -> Grid:
    base, budgets = section.section("base"), section.section("budgets")
    grid = Grid(
        sizes(section, "batch"),
        sizes(section, "isl"),
        sizes(base, "heads"),
        sizes(base, "kv_heads"),
        base.integer("head_dim", minimum=1),
        budgets.integer("mha_tokens", minimum=1),
        budgets.integer("mha_batch", minimum=1),
        budgets.integer("gqa_tokens", minimum=1),
        budgets.integer("kv_elements_below", minimum=1),
    )
    base.done()
    budgets.done()
    return grid


def expand(grid: Grid, models: Sequence[Model], precisions: Sequence[Precision]) -> Iterator[Batch]:
    """Full attention at the base head size, then each model's layers, over batch and prompt length."""
    base = [Shape(q, q, grid.head_dim, 0) for q in grid.heads]
    base += [
        Shape(q, kv, grid.head_dim, 0) for q in grid.heads for kv in grid.kv_heads if kv < q and q % kv == 0
    ]
    kinds = [(precision["dtype"], precision["kv_dtype"]) for precision in precisions]
    for owner, shapes in owned(base, models).items():
        for shape in shapes:
            points = [(b, s) for b in grid.batch for s in grid.isl if _within(grid, shape, b, s)]
            yield Batch(owner, [(*kind, *shape[:4]) for kind in kinds], points, (shape.variant,))


def _within(grid: Grid, shape: Shape, batch: int, isl: int) -> bool:
    """The token budgets of the sweep and the 32-bit element count of one layer's keys and values."""
    mha = shape.heads == shape.kv_heads
    if batch * isl > (grid.mha_tokens if mha else grid.gqa_tokens) or (mha and batch > grid.mha_batch):
        return False
    return batch * isl * shape.kv_heads * shape.head_dim * 2 < grid.kv_elements_below


def work(c: Columns) -> Work:
    size, kv_size = element_bytes(c["dtype"]), element_bytes(c["kv_dtype"])
    seen = attended(c["window"], c["isl"])
    # Keys seen by all queries of a prompt: a triangle until the window is full, then a band.
    pairs = c["batch"] * (seen * (seen + 1) / 2.0 + (c["isl"] - seen) * seen)
    tokens = 1.0 * c["batch"] * c["isl"]
    return Work(
        flops=4.0 * pairs * c["heads"] * c["head_dim"],
        weight_bytes=0.0 * tokens,
        kv_bytes=0.0 * tokens,
        activation_bytes=tokens * c["head_dim"] * (2 * size * c["heads"] + 2 * kv_size * c["kv_heads"]),
    )


OP = Op(
    name="attention_context",
    case=Case,
    build=("dtype", "kv_dtype", "heads", "kv_heads", "head_dim", "window", "variant", "dispatch"),
    read_grid=read_grid,
    expand=expand,
    work=work,
    precision=("dtype", "kv_dtype"),
    table=Table(
        name="context_attention_perf",
        family="attention",
        op_name="context_attention",
        columns=(
            field_column("batch_size", "int64", "batch"),
            field_column("isl", "int64"),
            field_column("num_heads", "int64", "heads"),
            kv_heads_column(),
            field_column("head_dim", "int64"),
            constant_column("beam_width", "int64", 1),
            field_column("attn_dtype", "string", "dtype"),
            field_column("kv_cache_dtype", "string", "kv_dtype"),
            constant_column("step", "int64", 0),
            window_column(),
        ),
        key=(
            "attn_dtype",
            "kv_cache_dtype",
            "num_key_value_heads",
            "head_dim",
            "window_size",
            "num_heads",
            "isl",
            "batch_size",
        ),
    ),
)
