"""`mamba2`: state-space layers."""

from __future__ import annotations

from typing import NamedTuple

from opatlas.config.document import Section


class Mamba2(NamedTuple):
    """One Mamba2 layer."""

    d_model: int
    state: int
    conv: int
    heads: int
    head_dim: int
    groups: int
    chunk: int


def read(section: Section) -> Mamba2:
    return Mamba2(*(section.integer(field, minimum=1) for field in Mamba2._fields))
