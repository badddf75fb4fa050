"""What mla_context and mla_generation share: expansion over models, work, and the columns of their tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from opatlas.catalogue.facts.mla import GEOMETRY
from opatlas.catalogue.models import Model
from opatlas.ops.dtypes import element_bytes
from opatlas.ops.rectangle import Rectangle
from opatlas.ops.spec import (
    Array,
    Batch,
    Column,
    Columns,
    Precision,
    Work,
    constant_column,
    field_column,
)

LATENT = GEOMETRY["kv_lora"] + GEOMETRY["rope"]


def expand(grid: Rectangle, models: Sequence[Model], precisions: Sequence[Precision]) -> Iterator[Batch]:
    """Each model's layer over ranks and the sweep's points."""
    for model in models:
        for layer in model.facts.get("mla", ()):
            heads = [(p["dtype"], p["kv_dtype"], layer.heads // tp) for p in precisions for tp in layer.tp]
            yield Batch(model.name, heads, grid.points())


def context_columns() -> tuple[Column, ...]:
    return _columns(field_column("isl", "int64"), constant_column("step", "int64", 0))


def generation_columns() -> tuple[Column, ...]:
    def step(c: Columns) -> Array:
        return np.asarray(c["kv_len"] - 1)

    return _columns(constant_column("isl", "int64", 1), Column("step", "int64", step))


def _columns(isl: Column, step: Column) -> tuple[Column, ...]:
    return (
        field_column("mla_dtype", "string", "dtype"),
        field_column("kv_cache_dtype", "string", "kv_dtype"),
        field_column("num_heads", "int64", "heads"),
        field_column("batch_size", "int64", "batch"),
        isl,
        constant_column("tp_size", "int64", 1),
        step,
    )


def context_work(c: Columns) -> Work:
    """Prefill: keys and values of each head, expanded from the latent."""
    tokens = 1.0 * c["batch"] * c["isl"]
    width = GEOMETRY["nope"] + GEOMETRY["rope"] + GEOMETRY["v"]
    return Work(
        flops=2.0 * tokens * (c["isl"] + 1) / 2 * c["heads"] * width,
        weight_bytes=0.0 * tokens,
        kv_bytes=0.0 * tokens,
        activation_bytes=tokens * 2 * c["heads"] * width,
    )


def generation_work(c: Columns) -> Work:
    """Decode: every head reads the one latent of each cached token."""
    keys = 1.0 * c["batch"] * c["kv_len"]
    return Work(
        flops=2.0 * keys * c["heads"] * (LATENT + GEOMETRY["kv_lora"]),
        weight_bytes=0.0 * keys,
        kv_bytes=keys * LATENT * element_bytes(c["kv_dtype"]),
        activation_bytes=2.0 * c["batch"] * c["heads"] * (LATENT + GEOMETRY["kv_lora"]),
    )
