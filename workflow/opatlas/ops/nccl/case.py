"""One point of the nccl op."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """One `collective` of `elements` elements per rank over `gpus` GPUs of a node."""

    dtype: str
    collective: str
    gpus: int
    elements: int
