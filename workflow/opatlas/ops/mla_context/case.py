"""One point of the mla_context op."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """Causal attention over `batch` prompts of `isl` tokens each, `heads` heads a rank.

    `dtype` is the precision of the products, `kv_dtype` that of the latent cache. The geometry is the one
    that tables do not name: latent 512, rope 64, nope and value 128 wide.
    """

    dtype: str
    kv_dtype: str
    heads: int
    batch: int
    isl: int
