"""`dsv41`: the decoder layer of DeepSeek-V4.1, measured as a whole."""

from __future__ import annotations

from typing import NamedTuple

from opatlas.catalogue.reading import ranks
from opatlas.config.document import Section


class Dsv41(NamedTuple):
    """One decoder, unsharded: its width, query heads and latent dimension."""

    hidden: int
    heads: int
    head_dim: int
    tp: list[int]


def read(section: Section) -> Dsv41:
    heads = section.integer("heads", minimum=1)
    return Dsv41(
        section.integer("hidden", minimum=1),
        heads,
        section.integer("head_dim", minimum=1),
        ranks(section, heads),
    )
