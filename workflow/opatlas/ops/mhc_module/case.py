"""One point of the mhc_module op."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """`tokens` tokens of `streams` residual streams, each `hidden` wide, at one call `site` of a layer.

    `sinkhorn` iterations normalise the mixing matrix. The architecture says whose kernels are called.
    """

    architecture: str
    dtype: str
    site: str
    hidden: int
    streams: int
    sinkhorn: int
    tokens: int
