"""One point of the encoder_attention op."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """Attention without a mask over `batch` images of `isl` patches.

    Queries, keys and values are [batch, isl, heads, head_dim]; `heads` are those of one rank.
    """

    dtype: str
    heads: int
    head_dim: int
    batch: int
    isl: int
