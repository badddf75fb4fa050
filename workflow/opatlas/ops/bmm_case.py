"""Cases of the per-head products of latent attention.

Imported by the worker: standard library only.
"""

from __future__ import annotations

from typing import NamedTuple


class BmmCase(NamedTuple):
    """y[heads, tokens, out] = x[heads, tokens, in] @ w[heads, in, out], operands in `dtype`."""

    dtype: str
    heads: int
    tokens: int
