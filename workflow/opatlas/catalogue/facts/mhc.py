"""`mhc`: manifold-constrained hyper-connections around a model's blocks."""

from __future__ import annotations

from typing import NamedTuple

from opatlas.config.document import Section

# What a layer calls around its blocks; a model that fuses or folds the streams has more sites.
SITES = ("pre", "post", "fused_post_pre", "expand", "contract")


class Mhc(NamedTuple):
    """Residual streams of one model: their width, how many, Sinkhorn iterations, and the call sites."""

    hidden: int
    streams: int
    sinkhorn: int
    sites: list[str]


def read(section: Section) -> Mhc:
    sites = section.texts("sites")
    for site in sites:
        if site not in SITES:
            section.wrong("sites", f"there is no site {site!r}; known: {', '.join(SITES)}")
    return Mhc(
        section.integer("hidden", minimum=1),
        section.integer("streams", minimum=1),
        section.integer("sinkhorn", minimum=1),
        sites,
    )
