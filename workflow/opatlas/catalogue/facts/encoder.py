"""`encoder`: attention layers of vision encoders."""

from __future__ import annotations

from typing import NamedTuple

from opatlas.catalogue.reading import ranks
from opatlas.config.document import Section


class Encoder(NamedTuple):
    """One encoder attention layer, unsharded: as many KV heads as query heads, no mask."""

    heads: int
    head_dim: int
    tp: list[int]


def read(section: Section) -> Encoder:
    heads = section.integer("heads", minimum=1)
    return Encoder(heads, section.integer("head_dim", minimum=1), ranks(section, heads))
