"""`attention`: the attention layers of a model."""

from __future__ import annotations

from typing import NamedTuple

from opatlas.catalogue.reading import ranks
from opatlas.config.document import Section


class Attention(NamedTuple):
    """One kind of attention layer, unsharded; correlated dimensions stay together.

    `v_head_dim` is that of the values where it is not `head_dim`. `sinks` says that each head has a
    learned sink logit, `chunked` that a window is a chunk which attention does not cross.
    """

    heads: int
    kv_heads: int
    head_dim: int
    windows: list[int]
    tp: list[int]
    v_head_dim: int | None
    sinks: bool
    chunked: bool

    def variant(self, window: int) -> str:
        """What sets the layer apart from plain attention, as cases name it."""
        parts = (
            f"v{self.v_head_dim}" if self.v_head_dim else "",
            "sinks" if self.sinks else "",
            "chunked" if self.chunked and window else "",
        )
        return "+".join(filter(None, parts))


def read(section: Section) -> Attention:
    heads = section.integer("heads", minimum=1)
    layer = Attention(
        heads,
        section.integer("kv_heads", minimum=1),
        section.integer("head_dim", minimum=1),
        section.integers("windows", [0]),
        ranks(section, heads),
        section.integer("v_head_dim", None, minimum=1),
        section.flag("sinks", False),
        section.flag("chunked", False),
    )
    if layer.kv_heads > 0 and layer.heads % layer.kv_heads:
        section.wrong("kv_heads", f"must divide the {layer.heads} query heads, found {layer.kv_heads}")
    if min(layer.windows, default=0) < 0:
        section.wrong("windows", "a window is a number of tokens, 0 for full attention")
    return layer
