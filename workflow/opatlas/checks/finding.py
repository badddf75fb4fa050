"""What a check found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

BLOCKING = "blocking"
ADVISORY = "advisory"
EXAMPLES = 5
# What to do about tables that are not those of the shards.
MERGE_AGAIN = "remove the dataset's folder under results/tables and run again"


@dataclass(frozen=True)
class Finding:
    """`selector` says which rows of `table` are meant, `count` how many; `advice` what to do about it."""

    check: str
    severity: str
    table: str
    message: str
    advice: str
    selector: str = ""
    count: int = 1
    examples: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        return {**vars(self), "examples": list(self.examples)}


def some(items: Iterable[Any]) -> tuple[str, ...]:
    """The first few of many, as text."""
    return tuple(str(item) for item, _ in zip(items, range(EXAMPLES), strict=False))
