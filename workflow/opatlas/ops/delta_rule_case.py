"""Cases of linear attention layers of the delta-rule family.

Imported by the worker: standard library only.
"""

from __future__ import annotations

from typing import NamedTuple


class DeltaRuleCase(NamedTuple):
    """`batch` sequences of `seq` tokens each through the convolution and the recurrence of one layer.

    `phase` is context (a prompt), generation (one token, `seq` is 1) or verify (`seq` draft tokens).
    Head counts are those of one rank, `d_model` is whole.
    """

    dtype: str
    phase: str
    d_model: int
    conv: int
    k_heads: int
    k_dim: int
    v_heads: int
    v_dim: int
    batch: int
    seq: int
