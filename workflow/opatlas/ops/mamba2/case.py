"""One point of the mamba2 op."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """`batch` sequences of `seq` tokens each through the convolution and the scan of one layer.

    `phase` is context (a prompt) or generation (one token, `seq` is 1); the layer is not sharded.
    """

    dtype: str
    phase: str
    d_model: int
    state: int
    conv: int
    heads: int
    head_dim: int
    groups: int
    chunk: int
    batch: int
    seq: int
