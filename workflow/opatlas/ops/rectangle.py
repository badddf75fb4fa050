"""Sweeps over batch and length, cut by the tokens of a batch."""

from __future__ import annotations

from typing import NamedTuple

from opatlas.catalogue.reading import sizes
from opatlas.config.document import Section


class Rectangle(NamedTuple):
    """Every batch at every length that holds at most `tokens_max` tokens together."""

    batch: list[int]
    length: list[int]
    tokens_max: int

    def points(self, max_context: int | None = None) -> list[tuple[int, int]]:
        """(batch, length), of lengths that a model of this context length takes."""
        return [
            (batch, length)
            for batch in self.batch
            for length in self.length
            if batch * length <= self.tokens_max and (max_context is None or length <= max_context)
        ]


def read_context(section: Section) -> Rectangle:
    return _read(section, "isl")


def read_generation(section: Section) -> Rectangle:
    return _read(section, "kv_len")


def _read(section: Section, length: str) -> Rectangle:
    tokens_max = section.integer("tokens_max", minimum=1)
    return Rectangle(sizes(section, "batch"), sizes(section, length), tokens_max)
