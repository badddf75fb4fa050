"""`gemm`: the widths of a model's linear layers."""

from __future__ import annotations

from typing import NamedTuple

from opatlas.catalogue.reading import sizes
from opatlas.config.document import Section


class Gemm(NamedTuple):
    """Output widths n and input widths k of one rank, crossed with each other."""

    n: list[int]
    k: list[int]


def read(section: Section) -> Gemm:
    return Gemm(sizes(section, "n"), sizes(section, "k"))
