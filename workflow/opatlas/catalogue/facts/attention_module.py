"""`attention_module`: whole attention blocks (projections and attention) that are measured as one."""

from __future__ import annotations

from typing import NamedTuple

from opatlas.catalogue.reading import precisions, ranks
from opatlas.config.document import Section

KINDS = ("mla", "dsa", "msa", "dsv4")


class AttentionModule(NamedTuple):
    """One checkpoint's attention block.

    `kind` is the family it belongs to, `heads` its unsharded query heads, `max_context` the longest
    sequence it takes in tokens. `dtypes` are the precisions of the projections that are measured with
    this checkpoint. `skip_indexer` says that some layers take over the previous layer's top-k choice.
    """

    kind: str
    hidden: int
    heads: int
    tp: list[int]
    max_context: int
    dtypes: list[str]
    skip_indexer: bool


def read(section: Section) -> AttentionModule:
    kind, hidden = section.choice("kind", KINDS), section.integer("hidden", minimum=1)
    heads = section.integer("heads", minimum=1)
    return AttentionModule(
        kind,
        hidden,
        heads,
        ranks(section, heads),
        section.integer("max_context", minimum=1),
        precisions(section, "dtypes"),
        section.flag("skip_indexer", False),
    )
