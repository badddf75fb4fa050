"""One point of the moe_ep op."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """One of `ep` ranks computes its share of a layer's experts for `tokens` tokens of all ranks together.

    `phase` is context or generation where the framework has a path for each, else any. `slots` are the
    expert copies over all ranks. `distribution` names how tokens spread over experts, with _eplb behind it
    where experts are placed to balance it; `placement` repeats it where a module is built for it.
    `routing` and `activation` are those of the moe op.
    """

    dtype: str
    hidden: int
    inter: int
    topk: int
    experts: int
    slots: int
    ep: int
    phase: str
    distribution: str
    tokens: int
    placement: str = ""
    routing: str = ""
    activation: str = ""
