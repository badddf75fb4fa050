"""`delta_rule`: linear attention layers of the delta-rule family."""

from __future__ import annotations

from typing import NamedTuple

from opatlas.catalogue.reading import ranks
from opatlas.config.document import Section

# gdn gates a head as a whole, kda each of its channels.
KINDS = ("gdn", "kda")


class DeltaRule(NamedTuple):
    """One layer; tensor parallelism splits its heads, `d_model` stays whole."""

    kind: str
    d_model: int
    conv: int
    k_heads: int
    k_dim: int
    v_heads: int
    v_dim: int
    tp: list[int]


def read(section: Section) -> DeltaRule:
    k_heads, v_heads = section.integer("k_heads", minimum=1), section.integer("v_heads", minimum=1)
    layer = DeltaRule(
        section.choice("kind", KINDS),
        section.integer("d_model", minimum=1),
        section.integer("conv", minimum=1),
        k_heads,
        section.integer("k_dim", minimum=1),
        v_heads,
        section.integer("v_dim", minimum=1),
        ranks(section, k_heads),
    )
    if k_heads > 0 and v_heads % k_heads:
        section.wrong("v_heads", f"must be a multiple of the {k_heads} key heads, found {v_heads}")
    return layer
