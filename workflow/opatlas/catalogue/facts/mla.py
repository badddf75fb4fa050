"""`mla`: multi-head latent attention layers."""

from __future__ import annotations

from typing import NamedTuple

from opatlas.catalogue.reading import ranks
from opatlas.config.document import Section


class Mla(NamedTuple):
    """One MLA layer, unsharded.

    Every checkpoint known has one latent geometry (kv_lora 512, rope 64, nope and v 128), which tables
    do not name; so another one is a mistake here, not a case.
    """

    heads: int
    tp: list[int]


GEOMETRY = {"kv_lora": 512, "rope": 64, "nope": 128, "v": 128}


def read(section: Section) -> Mla:
    heads = section.integer("heads", minimum=1)
    for key, expected in GEOMETRY.items():
        if section.integer(key) != expected:
            section.wrong(key, f"the mla tables hold the geometry with {expected} only")
    return Mla(heads, ranks(section, heads))
