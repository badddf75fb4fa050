"""Cases of DeepEP's exchanges of tokens between ranks.

Imported by the worker: standard library only.
"""

from __future__ import annotations

from typing import NamedTuple


class DeepepCase(NamedTuple):
    """`tokens` tokens of each rank go to their experts on other ranks of `nodes` nodes, and come back.

    `sms` are the multiprocessors that the exchange may use, 0 where it uses none.
    """

    dtype: str
    hidden: int
    experts: int
    topk: int
    nodes: int
    sms: int
    tokens: int
