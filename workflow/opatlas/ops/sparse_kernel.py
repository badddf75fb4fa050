"""What the single kernels of sparse attention share: expansion, work, and the columns of their tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from opatlas.catalogue.models import Model
from opatlas.ops.long_context import LongContext
from opatlas.ops.spec import Batch, Column, Columns, Expansion, Precision, Work, constant_column, field_column

PRECISION = ("dtype", "kv_dtype")
BUILD = ("model", "architecture", "dtype", "kv_dtype", "heads")
INDEX_DIM = 128


def columns(ratio: int, *between: Column) -> tuple[Column, ...]:
    """The tables' columns; `between` stand behind the head count, `ratio` tokens share a cache entry."""
    return (
        field_column("model", "string"),
        field_column("architecture", "string"),
        field_column("mla_dtype", "string", "dtype"),
        field_column("kv_cache_dtype", "string", "kv_dtype"),
        constant_column("gemm_type", "string", "fp8_block"),
        field_column("num_heads", "int64", "heads"),
        *between,
        field_column("batch_size", "int64", "batch"),
        field_column("isl", "int64"),
        constant_column("tp_size", "int64", 1),
        field_column("step", "int64", "prefix"),
        constant_column("compress_ratio", "int64", ratio),
    )


def expansion(kind: str, points: Callable[[Any, int], list[tuple[int, int, int]]]) -> Expansion:
    """Expands each model of a kind over `points(grid, max_context)`: (batch, isl, prefix)."""

    def expand(grid: Any, models: Sequence[Model], precisions: Sequence[Precision]) -> Iterator[Batch]:
        for model in models:
            for kernels in model.facts.get("sparse_kernels", ()):
                if kernels.kind == kind:
                    heads = [
                        (model.name, model.architecture, *(p[key] for key in PRECISION), kernels.heads)
                        for p in precisions
                    ]
                    yield Batch(model.name, heads, points(grid, kernels.max_context))

    return expand


def glm5_points(grid: LongContext, max_context: int) -> list[tuple[int, int, int]]:
    """Chunked prefill, one one-token prefill per batch, and decode as one token behind the cache."""
    context = [point for point in grid.context.points(max_context) if point[1] > 1]
    single = [(batch, 1, 0) for batch in grid.context.batch]
    decode = [(batch, 1, kv_len - 1) for batch, kv_len in grid.decode.points(max_context)]
    return context + single + decode


def logits_work(c: Columns, ratio: int = 1) -> Work:
    """Index scores of every new token against every cache entry; index keys are in FP8."""
    entries = (c["prefix"] + c["isl"]) / ratio
    pairs = c["batch"] * c["isl"] * (c["prefix"] + (c["isl"] + 1) / 2.0) / ratio
    return Work(
        flops=2.0 * pairs * c["heads"] * INDEX_DIM,
        weight_bytes=0.0 * pairs,
        kv_bytes=c["batch"] * entries * INDEX_DIM,
        activation_bytes=4.0 * pairs,
    )


def topk_work(c: Columns, ratio: int = 1) -> Work:
    """Reads a score per new token and cache entry; no products."""
    pairs = c["batch"] * c["isl"] * (c["prefix"] + (c["isl"] + 1) / 2.0) / ratio
    return Work(0.0 * pairs, 0.0 * pairs, 0.0 * pairs, 4.0 * pairs)


def attention_work(c: Columns, topk: int) -> Work:
    """Latent attention over at most `topk` entries per query."""
    seen = np.minimum(c["prefix"] + (c["isl"] + 1) / 2.0, topk)
    tokens = 1.0 * c["batch"] * c["isl"]
    return Work(
        flops=2.0 * tokens * c["heads"] * seen * (576 + 512),
        weight_bytes=0.0 * tokens,
        kv_bytes=c["batch"] * np.minimum(c["prefix"], topk) * 576.0,
        activation_bytes=2.0 * tokens * c["heads"] * (576 + 512),
    )
