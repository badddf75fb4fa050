"""What the attention ops share: sharding heads over ranks, table columns, masked work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from opatlas.catalogue.models import Model
from opatlas.ops.spec import GRID, Array, Columns, field_column
from opatlas.ops.spec import Column as TableColumn


class Shape(NamedTuple):
    """One rank's attention layer."""

    heads: int
    kv_heads: int
    head_dim: int
    window: int
    variant: str = ""


def sharded(models: Sequence[Model]) -> Iterator[tuple[str, Shape]]:
    """Every (model, shape) over the model's tp sizes; a split that leaves q % kv != 0 is no layer."""
    for model in models:
        for layer in model.facts.get("attention", ()):
            for window in layer.windows:
                for tp in layer.tp:
                    heads, kv_heads = layer.heads // tp, -(-layer.kv_heads // tp)
                    if heads % kv_heads == 0:
                        variant = layer.variant(window)
                        yield model.name, Shape(heads, kv_heads, layer.head_dim, window, variant)


def owned(base: Iterable[Shape], models: Sequence[Model]) -> dict[str, list[Shape]]:
    """Distinct shapes by owner, the sweep's own first."""
    shapes: dict[str, list[Shape]] = {GRID: list(base)}
    for name, shape in sharded(models):
        shapes.setdefault(name, []).append(shape)
    return {name: list(dict.fromkeys(mine)) for name, mine in shapes.items()}


def kv_heads_column() -> TableColumn:
    """Consumers read 0 where every query head has a KV head of its own (MHA)."""

    def values(c: Columns) -> Array:
        return np.where(c["kv_heads"] == c["heads"], 0, c["kv_heads"])

    return TableColumn("num_key_value_heads", "int64", values)


def window_column() -> TableColumn:
    return field_column("window_size", "int64", "window")


def attended(window: Array, length: Array) -> Array:
    """Keys that one query at the end of `length` tokens sees."""
    return np.where(window > 0, np.minimum(window, length), length)
