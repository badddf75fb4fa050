"""One point of the custom_allreduce op."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """All-reduce of `elements` elements over `gpus` GPUs of a node.

    `mode` is the name that the table has for calls in CUDA graphs, or outside of them.
    """

    dtype: str
    mode: str
    gpus: int
    elements: int
