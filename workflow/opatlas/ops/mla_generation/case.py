"""One point of the mla_generation op."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """`batch` sequences attend from their last token over `kv_len` cached ones, `heads` heads a rank.

    `dtype` is the precision of the products, `kv_dtype` that of the latent cache. The geometry is the one
    that tables do not name: latent 512, rope 64, nope and value 128 wide.
    """

    dtype: str
    kv_dtype: str
    heads: int
    batch: int
    kv_len: int
