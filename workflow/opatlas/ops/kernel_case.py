"""Cases of single kernels of sparse attention, taken out of one checkpoint's layer.

Imported by the worker: standard library only.
"""

from __future__ import annotations

from typing import NamedTuple


class KernelCase(NamedTuple):
    """`batch` sequences take `isl` new tokens each behind `prefix` cached ones, with all heads on one rank.

    `dtype` is the precision of the kernel's products, `kv_dtype` that of the cache it reads.
    """

    model: str
    architecture: str
    dtype: str
    kv_dtype: str
    heads: int
    batch: int
    isl: int
    prefix: int
