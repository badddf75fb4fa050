"""moe for planning and tables: sweep, work and published columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from opatlas.catalogue.facts.moe import Moe
from opatlas.catalogue.models import Model
from opatlas.catalogue.reading import precisions, sizes
from opatlas.config.document import Section
from opatlas.ops.dtypes import ACTIVATIONS, element_bytes
from opatlas.ops.moe.case import Case
from opatlas.ops.spec import Array, Batch, Columns, Op, Precision, Table, Work, field_column


class Grid(NamedTuple):
    tokens: list[int]
    tp: list[int]
    ep: list[int]
    gpus: list[int]
    distributions: list[str]
    dtypes: list[str]


def read_grid(section: Section) -> Grid:
    return Grid(
        sizes(section, "tokens"),
        sizes(section, "tp"),
        sizes(section, "ep"),
        sizes(section, "gpus"),
        section.texts("distributions"),
        precisions(section, "dtypes"),
    )


def expand(grid: Grid, models: Sequence[Model], declared: Sequence[Precision]) -> Iterator[Batch]:
    """Each model's layer in its precisions, over rank layouts, distributions and token counts."""
    points = [(tokens,) for tokens in grid.tokens]
    for model in models:
        for layer in model.facts.get("moe", ()):
            sizes = (layer.hidden, layer.inter, layer.topk, layer.experts)
            planned = grid.dtypes if layer.dtypes is None else layer.dtypes
            heads = [
                (precision["dtype"], *sizes, tp, ep, distribution)
                for precision in declared
                if precision["dtype"] in planned
                for tp, ep in _layouts(grid, layer)
                for distribution in grid.distributions
            ]
            yield Batch(model.name, heads, points, (layer.routing, layer.activation))


def _layouts(grid: Grid, layer: Moe) -> list[tuple[int, int]]:
    """Rank layouts that split the experts and their intermediate size evenly."""
    return [
        (tp, ep)
        for tp in grid.tp
        for ep in grid.ep
        if tp * ep in grid.gpus
        and layer.experts % ep == 0
        and layer.inter % tp == 0
        and (layer.tp_below is None or tp < layer.tp_below)
    ]


def work(c: Columns) -> Work:
    """One rank's share, tokens spread evenly over ranks and at most `tokens * topk` experts touched."""
    size = element_bytes(c["dtype"])
    activation = element_bytes([ACTIVATIONS.get(dtype, dtype) for dtype in c["dtype"]])
    pairs = c["tokens"] * c["topk"] / c["ep"]
    weights = 3.0 * c["hidden"] * c["inter"] / c["tp"]
    touched = np.minimum(c["experts"] / c["ep"], np.maximum(pairs, 1.0))
    return Work(
        flops=2.0 * pairs * weights,
        weight_bytes=size * weights * touched,
        kv_bytes=0.0 * pairs,
        activation_bytes=activation * c["tokens"] * c["hidden"] * 2,
        certain=_certain(c, touched),
    )


def _certain(c: Columns, touched: Array) -> Array:
    """What a rank does for sure.

    Alone it has every token, and each goes to `topk` different experts. Of several ranks one may get
    no token, unless the load is balanced and there are enough tokens for every expert.
    """
    balanced = c["distribution"] == "balanced"
    alone = np.where(balanced, 1.0, np.minimum(1.0, c["topk"] / touched))
    per_expert = c["tokens"] * c["topk"] / c["experts"]
    shared = np.where(balanced, np.floor(per_expert) / np.maximum(per_expert, 1.0), 0.0)
    certain: Array = np.where(c["ep"] == 1, alone, shared)
    return certain


OP = Op(
    name="moe",
    case=Case,
    build=(
        *("dtype", "hidden", "inter", "topk", "experts", "tp", "ep"),
        *("distribution", "routing", "activation", "dispatch"),
    ),
    read_grid=read_grid,
    expand=expand,
    work=work,
    table=Table(
        name="moe_perf",
        family="moe",
        op_name="moe",
        columns=(
            field_column("moe_dtype", "string", "dtype"),
            field_column("num_tokens", "int64", "tokens"),
            field_column("hidden_size", "int64", "hidden"),
            field_column("inter_size", "int64", "inter"),
            field_column("topk", "int64"),
            field_column("num_experts", "int64", "experts"),
            field_column("moe_tp_size", "int64", "tp"),
            field_column("moe_ep_size", "int64", "ep"),
            field_column("distribution", "string"),
        ),
        key=(
            "moe_dtype",
            "distribution",
            "topk",
            "num_experts",
            "hidden_size",
            "inter_size",
            "moe_tp_size",
            "moe_ep_size",
            "num_tokens",
        ),
    ),
)
