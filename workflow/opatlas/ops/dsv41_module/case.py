"""One point of the dsv41_module op."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """`batch` prompts take `query` new tokens each behind `prefix` cached ones, then `steps` decode steps.

    `profile` is full, or decoder_bounded where prefill attends to the decoder's window only. `heads` are
    those of one of `tp` ranks.
    """

    model: str
    dtype: str
    profile: str
    hidden: int
    heads: int
    head_dim: int
    tp: int
    batch: int
    query: int
    prefix: int
    steps: int
