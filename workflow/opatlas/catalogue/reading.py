"""Readers of values that several kinds of facts and sweeps share."""

from __future__ import annotations

from opatlas.config.document import Section
from opatlas.ops.dtypes import BYTES


def precisions(section: Section, key: str) -> list[str]:
    """A list of precisions by their names in tables."""
    names = section.texts(key)
    for name in names:
        if name not in BYTES:
            section.wrong(key, f"there is no precision {name!r}; known: {', '.join(BYTES)}")
    return names


def sizes(section: Section, key: str, minimum: int = 1) -> list[int]:
    """A list of whole numbers from `minimum` on."""
    values = section.integers(key)
    if values and min(values) < minimum:
        section.wrong(key, f"must be at least {minimum}, found {min(values)}")
        return []
    return values


def ranks(section: Section, heads: int) -> list[int]:
    """`tp`: the tensor-parallel sizes that a layer of `heads` heads is split over, evenly."""
    values = sizes(section, "tp")
    for tp in values:
        if heads % tp:
            section.wrong("tp", f"{heads} heads cannot be split over {tp} ranks")
            return []
    return values
