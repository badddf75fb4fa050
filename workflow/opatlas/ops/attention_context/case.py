"""One point of the attention_context op."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """Causal self-attention over `batch` prompts of `isl` tokens each.

    q is [batch, isl, heads, head_dim], k and v are [batch, isl, kv_heads, head_dim]; head counts are
    those of one rank. `dtype` is the precision of the products, `kv_dtype` that of the KV cache.
    `window` is the sliding window in tokens, 0 for full attention.
    `variant` names what else the layer has: `sinks` (a learned logit per head), `chunked` (the window is
    a chunk that attention does not cross), `v128` (values narrower than keys). `dispatch` is the kernel
    that the framework picks, where it picks one by SM or model.
    """

    dtype: str
    kv_dtype: str
    heads: int
    kv_heads: int
    head_dim: int
    window: int
    batch: int
    isl: int
    variant: str = ""
    dispatch: str = ""
