"""`moe`: the mixture-of-experts layers of a model."""

from __future__ import annotations

from typing import NamedTuple

from opatlas.catalogue.reading import precisions
from opatlas.config.document import Section


class Moe(NamedTuple):
    """One MoE layer, unsharded.

    `dtypes` are the precisions its checkpoints come in, None for the sweep's. `tp_below` bounds the
    tensor-parallel size (exclusive) where the layer cannot be split further. `routing` and `activation`
    are as in the moe op's cases. `wide_ep` says that the layer is served with its experts spread wide.
    """

    hidden: int
    inter: int
    topk: int
    experts: int
    dtypes: list[str] | None
    tp_below: int | None
    routing: str
    activation: str
    wide_ep: bool


def read(section: Section) -> Moe:
    layer = Moe(
        section.integer("hidden", minimum=1),
        section.integer("inter", minimum=1),
        section.integer("topk", minimum=1),
        section.integer("experts", minimum=1),
        precisions(section, "dtypes") if "dtypes" in section else None,
        section.integer("tp_below", None, minimum=2),
        section.text("routing", ""),
        section.text("activation", ""),
        section.flag("wide_ep", False),
    )
    if layer.topk > layer.experts:
        section.wrong("topk", f"a token cannot go to {layer.topk} of {layer.experts} experts")
    for key in ("routing", "activation"):
        if "/" in getattr(layer, key) or "=" in getattr(layer, key):
            section.wrong(key, "a name has no / and no =")
    return layer
