"""What the collectives within a node share: message sizes over GPUs, and work."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from opatlas.catalogue.reading import sizes
from opatlas.config.document import Section
from opatlas.ops.dtypes import element_bytes
from opatlas.ops.spec import Columns, Work


class Messages(NamedTuple):
    """Every message size, in elements, over every number of GPUs."""

    gpus: list[int]
    elements: list[int]

    def points(self) -> list[tuple[int, int]]:
        return list(product(self.gpus, self.elements))


def read_messages(section: Section) -> Messages:
    return Messages(sizes(section, "gpus", minimum=2), sizes(section, "elements"))


def message_work(c: Columns) -> Work:
    """A message is read and written once; links bound it, not memory."""
    moved = 2.0 * c["elements"] * element_bytes(c["dtype"])
    return Work(0.0 * moved, 0.0 * moved, 0.0 * moved, moved)
