"""What the two modes of DeepEP share: expansion over models, and work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from opatlas.catalogue.models import Model
from opatlas.catalogue.reading import sizes
from opatlas.config.document import Section
from opatlas.ops.deepep_case import DeepepCase
from opatlas.ops.spec import Batch, Columns, Op, Precision, Table, Work


class Grid(NamedTuple):
    nodes: list[int]
    sms: list[int]
    tokens: list[int]


def deepep_op(name: str, table: Table) -> Op:
    return Op(
        name=name,
        case=DeepepCase,
        build=("dtype", "hidden", "experts", "topk", "nodes"),
        read_grid=_read_grid,
        expand=_expand,
        work=_work,
        table=table,
    )


def _read_grid(section: Section) -> Grid:
    return Grid(sizes(section, "nodes"), sizes(section, "sms", minimum=0), sizes(section, "tokens"))


def _expand(grid: Grid, models: Sequence[Model], precisions: Sequence[Precision]) -> Iterator[Batch]:
    """The expert layouts of every model's MoE layers."""
    points = list(product(grid.nodes, grid.sms, grid.tokens))
    for model in models:
        for layer in model.facts.get("moe", ()):
            heads = [(p["dtype"], layer.hidden, layer.experts, layer.topk) for p in precisions]
            yield Batch(model.name, heads, points)


def _work(c: Columns) -> Work:
    """Every token's copies are read and written on both ways; links bound it, not memory."""
    moved = 2.0 * 2 * c["tokens"] * c["topk"] * c["hidden"]
    return Work(0.0 * moved, 0.0 * moved, 0.0 * moved, moved)
