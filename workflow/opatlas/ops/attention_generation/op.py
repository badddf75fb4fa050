"""attention_generation for planning and tables: sweep, work and published columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from opatlas.catalogue.models import Model
from opatlas.catalogue.reading import sizes
from opatlas.config.document import Section
from opatlas.ops.attention_generation.case import Case
from opatlas.ops.attention_shapes import Shape, attended, kv_heads_column, owned, window_column
from opatlas.ops.dtypes import element_bytes
from opatlas.ops.spec import Batch, Column, Columns, Op, Precision, Table, Work, constant_column, field_column


class Grid(NamedTuple):
    batch: list[int]
    kv_len: list[int]
    mha_heads: list[int]
    gqa_heads: list[int]
    kv_heads: list[int]
    head_dim: int
    mha_tokens: int
    gqa_tokens: int
    min_batches: int
    drop_longest_from_batch: int


def read_grid(section: Section) -> Grid:
    base, budgets = section.section("base"), section.section("budgets")
    grid = Grid(
        sizes(section, "batch"),
        sizes(section, "kv_len"),
        sizes(base, "mha_heads"),
        sizes(base, "gqa_heads"),
        sizes(base, "kv_heads"),
        base.integer("head_dim", minimum=1),
        budgets.integer("mha_tokens", minimum=1),
        budgets.integer("gqa_tokens", minimum=1),
        budgets.integer("min_batches_per_kv_len", minimum=1),
        budgets.integer("drop_longest_kv_len_from_batch", minimum=1),
    )
    base.done()
    budgets.done()
    return grid


def expand(grid: Grid, models: Sequence[Model], precisions: Sequence[Precision]) -> Iterator[Batch]:
    """Full attention at the base head size, then each model's layers, over batch and cache length."""
    base = [Shape(q, q, grid.head_dim, 0) for q in grid.mha_heads]
    base += [
        Shape(q, kv, grid.head_dim, 0)
        for q in grid.gqa_heads
        for kv in grid.kv_heads
        if kv < q and q % kv == 0
    ]
    kinds = [(precision["dtype"], precision["kv_dtype"]) for precision in precisions]
    for owner, shapes in owned(base, models).items():
        for shape in shapes:
            points = _points(grid, shape)
            yield Batch(owner, [(*kind, *shape[:4]) for kind in kinds], points, (shape.variant,))


def _points(grid: Grid, shape: Shape) -> list[tuple[int, int]]:
    """(batch, kv_len) within the cache budget of the sweep.

    A length that fits at too few batches is left out, and the longest length of a large batch too,
    since a cache of that size is not served.
    """
    budget = grid.mha_tokens if shape.heads == shape.kv_heads else grid.gqa_tokens
    lengths: dict[int, list[int]] = {batch: [] for batch in grid.batch}
    for kv_len in grid.kv_len:
        most = max(budget * 128 // shape.head_dim, budget) // kv_len // shape.heads
        fitting = [batch for batch in grid.batch if batch <= most]
        if len(fitting) >= grid.min_batches:
            for batch in fitting:
                lengths[batch].append(kv_len)
    return [
        (batch, kv_len)
        for batch, fitting in lengths.items()
        for kv_len in (fitting[:-1] if batch >= grid.drop_longest_from_batch else fitting)
    ]


def work(c: Columns) -> Work:
    kv_size = element_bytes(c["kv_dtype"])
    seen = attended(c["window"], c["kv_len"])
    keys = 1.0 * c["batch"] * seen
    return Work(
        flops=4.0 * keys * c["heads"] * c["head_dim"],
        weight_bytes=0.0 * keys,
        kv_bytes=2.0 * keys * c["kv_heads"] * c["head_dim"] * kv_size,
        activation_bytes=4.0 * c["batch"] * c["heads"] * c["head_dim"],
    )


OP = Op(
    name="attention_generation",
    case=Case,
    build=("dtype", "kv_dtype", "heads", "kv_heads", "head_dim", "window", "variant", "dispatch"),
    read_grid=read_grid,
    expand=expand,
    work=work,
    precision=("dtype", "kv_dtype"),
    table=Table(
        name="generation_attention_perf",
        family="attention",
        op_name="generation_attention",
        columns=(
            field_column("batch_size", "int64", "batch"),
            constant_column("isl", "int64", 1),
            field_column("num_heads", "int64", "heads"),
            kv_heads_column(),
            field_column("head_dim", "int64"),
            constant_column("beam_width", "int64", 1),
            field_column("attn_dtype", "string", "dtype"),
            field_column("kv_cache_dtype", "string", "kv_dtype"),
            Column("step", "int64", lambda c: np.asarray(c["kv_len"] - 1)),
            window_column(),
        ),
        key=(
            "kv_cache_dtype",
            "num_key_value_heads",
            "head_dim",
            "window_size",
            "num_heads",
            "batch_size",
            "isl",
            "step",
        ),
    ),
)
