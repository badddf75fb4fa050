"""Cases of attention modules: a whole attention block of one checkpoint, as seen from one rank.

Imported by the worker: standard library only.
"""

from __future__ import annotations

from typing import NamedTuple


class ContextCase(NamedTuple):
    """`batch` prompts go on by `isl` new tokens each behind `prefix` cached ones.

    The block is that of the checkpoint `model` (its config.json gives what is not said here), with its
    projections in `dtype`, attention products in `attn_dtype` and the KV cache in `kv_dtype`. `heads`
    are those of one of `tp` ranks.
    """

    model: str
    architecture: str
    dtype: str
    attn_dtype: str
    kv_dtype: str
    hidden: int
    heads: int
    tp: int
    batch: int
    isl: int
    prefix: int


class GenerationCase(NamedTuple):
    """`batch` sequences of `kv_len` cached tokens each go on by one token; the rest as in ContextCase."""

    model: str
    architecture: str
    dtype: str
    attn_dtype: str
    kv_dtype: str
    hidden: int
    heads: int
    tp: int
    batch: int
    kv_len: int
