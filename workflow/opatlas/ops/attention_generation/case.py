"""One point of the attention_generation op."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """One query token of each of `batch` sequences over `kv_len` keys, its own included.

    q is [batch, 1, heads, head_dim], the cache holds [batch, kv_len, kv_heads, head_dim] keys and as
    many values; head counts are those of one rank. `dtype` is the precision of the query, `kv_dtype`
    that of the KV cache. `window` is the sliding window in tokens, 0 for full attention.
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
    kv_len: int
    variant: str = ""
    dispatch: str = ""
