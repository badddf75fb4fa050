"""One point of the moe op."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """`tokens` tokens through one gated MoE layer, seen from one rank of a tp x ep group.

    `hidden` and `inter` are the model's unsharded sizes: a rank holds experts / ep experts of
    intermediate size inter / tp. `distribution` names how tokens spread over experts.

    `routing` names how the router picks experts and `activation` the experts' nonlinearity; empty are a
    softmax over all experts and a gated SiLU. `dispatch` is the kernel that the framework picks, where it
    picks one by SM, precision or model.
    """

    dtype: str
    hidden: int
    inter: int
    topk: int
    experts: int
    tp: int
    ep: int
    distribution: str
    tokens: int
    routing: str = ""
    activation: str = ""
    dispatch: str = ""
