"""One point of the moe_a2a op."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """`tokens` tokens of each of `ep` ranks on `nodes` nodes go to their experts, and come back.

    `comm` names the library and its mode, `wire` the precision that it sends in, as its table calls it,
    and `sms` the multiprocessors that it may use (0: none).
    """

    dtype: str
    comm: str
    wire: str
    hidden: int
    topk: int
    experts: int
    ep: int
    nodes: int
    sms: int
    tokens: int
