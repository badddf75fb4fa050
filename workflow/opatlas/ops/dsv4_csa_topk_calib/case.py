"""One point of the dsv4_csa_topk_calib op."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """`batch` sequences choose entries for `isl` new tokens each behind `prefix` cached ones.

    `kernel` is v1 where prompts are processed and v2 where a token is decoded.
    """

    model: str
    architecture: str
    dtype: str
    kv_dtype: str
    heads: int
    kernel: str
    batch: int
    isl: int
    prefix: int
