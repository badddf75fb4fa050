"""One point of the gemm op."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """y[m, n] = x[m, k] @ w[n, k]^T with x and w in `dtype`."""

    dtype: str
    m: int
    n: int
    k: int
