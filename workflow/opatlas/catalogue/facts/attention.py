"""`attention`: the attention layers of a model."""

from __future__ import annotations

from typing import NamedTuple

from opatlas.config.document import Section


class Attention(NamedTuple):
    """One kind of attention layer, unsharded; correlated dimensions stay together."""

    heads: int
    kv_heads: int
    head_dim: int
    windows: list[int]
    tp: list[int]


def read(section: Section) -> Attention:
    layer = Attention(
        section.integer("heads", minimum=1),
        section.integer("kv_heads", minimum=1),
        section.integer("head_dim", minimum=1),
        section.integers("windows", [0]),
        section.integers("tp"),
    )
    if layer.kv_heads and layer.heads % layer.kv_heads:
        section.wrong("kv_heads", f"must divide the {layer.heads} query heads, found {layer.kv_heads}")
    for tp in layer.tp:
        if tp < 1 or layer.heads % tp:
            section.wrong("tp", f"{layer.heads} query heads cannot be split over {tp} ranks")
    return layer
