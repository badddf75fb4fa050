"""One point of the custom_allreduce op."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """All-reduce of `elements` elements over `gpus` GPUs of a node.

    `mode` is graph, or eager where the framework also calls it outside of CUDA graphs.
    """

    dtype: str
    mode: str
    gpus: int
    elements: int
