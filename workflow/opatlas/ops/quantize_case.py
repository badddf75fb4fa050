"""Cases of FP8 quantisation of activations.

Imported by the worker: standard library only.
"""

from __future__ import annotations

from typing import NamedTuple


class QuantizeCase(NamedTuple):
    """x[m, k] in bfloat16 is quantised to `dtype`."""

    dtype: str
    m: int
    k: int
