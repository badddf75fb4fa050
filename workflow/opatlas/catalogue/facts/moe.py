"""`moe`: the mixture-of-experts layers of a model."""

from __future__ import annotations

from typing import NamedTuple

from opatlas.config.document import Section
from opatlas.ops.dtypes import BYTES


class Moe(NamedTuple):
    """One gated MoE layer, unsharded.

    `dtypes` are the precisions its checkpoints come in, None for every declared one. `tp_below`
    bounds the tensor-parallel size (exclusive) where the layer cannot be split further.
    """

    hidden: int
    inter: int
    topk: int
    experts: int
    dtypes: list[str] | None
    tp_below: int | None


def read(section: Section) -> Moe:
    layer = Moe(
        section.integer("hidden", minimum=1),
        section.integer("inter", minimum=1),
        section.integer("topk", minimum=1),
        section.integer("experts", minimum=1),
        section.texts("dtypes") if "dtypes" in section else None,
        section.integer("tp_below", None, minimum=2),
    )
    if layer.topk > layer.experts:
        section.wrong("topk", f"a token cannot go to {layer.topk} of {layer.experts} experts")
    for dtype in layer.dtypes or ():
        if dtype not in BYTES:
            section.wrong("dtypes", f"there is no precision {dtype!r}; known: {', '.join(BYTES)}")
    return layer
