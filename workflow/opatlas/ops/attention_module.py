"""What the attention modules share: expansion over checkpoints, work, and the columns of their tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from opatlas.catalogue.facts.attention_module import AttentionModule
from opatlas.catalogue.models import Model
from opatlas.config.document import Section
from opatlas.ops.dtypes import element_bytes
from opatlas.ops.module_case import ContextCase, GenerationCase
from opatlas.ops.spec import (
    Array,
    Batch,
    Column,
    Columns,
    Expansion,
    Op,
    Precision,
    Table,
    Work,
    constant_column,
    field_column,
)

PRECISION = ("dtype", "attn_dtype", "kv_dtype")
BUILD = ("model", "architecture", "dtype", "attn_dtype", "kv_dtype", "hidden", "heads", "tp")


@dataclass(frozen=True)
class Family:
    """One kind of attention block, by the smallest sizes of any of its checkpoints.

    Work counted from them is a floor, so that a roofline made of it never rejects a true latency.
    `per_head` and `shared` are weights per unit of hidden size, `inner` weights per head beside them,
    `products` those of one head, query and key. `kv` and `index` are elements per entry of the cache, which
    stands for `ratio` tokens; `topk` bounds the entries that one query reads (None: all of them).
    """

    kind: str
    table_family: str
    per_head: int
    shared: int
    inner: int
    products: int
    kv: int
    index: int = 0
    topk: int | None = None
    ratio: int = 1


MLA = Family(
    "mla", "mla", per_head=128, shared=1536 + 576, inner=1536 * 192 + 512 * 256, products=576 + 512, kv=576
)
DSA = replace(MLA, kind="dsa", table_family="sparse_attention", index=128, topk=2048)
MSA = Family(
    "msa", "msa", per_head=2 * 128, shared=2 * 128, inner=0, products=2 * 128, kv=2 * 128, index=1, topk=2048
)
CSA = Family(
    "dsv4",
    "sparse_attention",
    per_head=0,
    shared=1024 + 512,
    inner=1024 * 512,
    products=2 * 512,
    kv=512,
    index=128,
    topk=512,
    ratio=4,
)
HCA = replace(CSA, index=0, topk=None, ratio=128)


def context_op(
    name: str,
    family: Family,
    read_grid: Callable[[Section], Any],
    points: Callable[[Any, int], list[tuple[int, int, int]]],
    key: tuple[str, ...],
    **more: Any,
) -> Op:
    """The prefill op of a family; `points(grid, max_context)` gives (batch, isl, prefix)."""
    columns = (field_column("isl", "int64"), field_column("step", "int64", "prefix"))
    return _op(name, ContextCase, family, read_grid, points, columns, key, **more)


def generation_op(
    name: str,
    family: Family,
    read_grid: Callable[[Section], Any],
    points: Callable[[Any, int], list[tuple[int, int]]],
    key: tuple[str, ...],
    **more: Any,
) -> Op:
    """The decode op of a family; `points(grid, max_context)` gives (batch, kv_len)."""
    columns = (constant_column("isl", "int64", 1), field_column("step", "int64", "kv_len"))
    return _op(name, GenerationCase, family, read_grid, points, columns, key, **more)


def _op(
    name: str,
    case: type,
    family: Family,
    read_grid: Callable[[Section], Any],
    points: Callable[[Any, int], Any],
    length: tuple[Column, Column],
    key: tuple[str, ...],
    *,
    table: str = "",
    wants: Callable[[AttentionModule], bool] = lambda module: True,
    extra: tuple[Column, ...] = (),
    sweep: str = "",
) -> Op:
    isl, step = length
    return Op(
        name=name,
        case=case,
        build=BUILD,
        read_grid=read_grid,
        expand=_expansion(family, points, wants),
        work=lambda columns: _work(family, columns),
        table=Table(
            name=f"{table or name}_perf",
            family=family.table_family,
            op_name=name,
            columns=(
                field_column("model", "string"),
                field_column("architecture", "string"),
                field_column("mla_dtype", "string", "attn_dtype"),
                field_column("kv_cache_dtype", "string", "kv_dtype"),
                field_column("gemm_type", "string", "dtype"),
                field_column("num_heads", "int64", "heads"),
                field_column("batch_size", "int64", "batch"),
                isl,
                field_column("tp_size", "int64", "tp"),
                step,
                *extra,
            ),
            key=key,
        ),
        precision=PRECISION,
        sweep=sweep,
    )


def _expansion(
    family: Family,
    points: Callable[[Any, int], list[tuple[int, ...]]],
    wants: Callable[[AttentionModule], bool],
) -> Expansion:
    def expand(grid: Any, models: Sequence[Model], precisions: Sequence[Precision]) -> Iterator[Batch]:
        """Each checkpoint's block in the precisions it is measured with, over ranks and points."""
        for model in models:
            for module in model.facts.get("attention_module", ()):
                if module.kind != family.kind or not wants(module):
                    continue
                heads = [
                    (
                        *(model.name, model.architecture),
                        *(precision[key] for key in PRECISION),
                        *(module.hidden, module.heads // tp, tp),
                    )
                    for precision in precisions
                    if precision["dtype"] in module.dtypes
                    for tp in module.tp
                ]
                yield Batch(model.name, heads, points(grid, module.max_context))

    return expand


def _work(family: Family, c: Columns) -> Work:
    """One call: projections of every new token, and attention of each over what came before it."""
    new = c["isl"] if "isl" in c else np.ones_like(c["batch"])
    before = c["prefix"] if "prefix" in c else c["kv_len"]
    tokens, cached = 1.0 * c["batch"] * new, 1.0 * c["batch"] * before
    weights = c["hidden"] * (family.per_head * c["heads"] + family.shared) + family.inner * c["heads"]
    # The mean key count of a chunk's queries, or the top-k where it is less.
    seen: Array = (before + (new + 1) / 2.0) / family.ratio
    read = cached / family.ratio
    if family.topk is not None:
        seen, read = np.minimum(seen, family.topk), np.minimum(read, c["batch"] * family.topk)
    kv_size = element_bytes(c["kv_dtype"])
    return Work(
        flops=2.0 * tokens * (weights + c["heads"] * seen * family.products),
        weight_bytes=element_bytes(c["dtype"]) * weights,
        kv_bytes=read * family.kv * kv_size + cached / family.ratio * family.index,
        activation_bytes=4.0 * tokens * c["hidden"],
    )
