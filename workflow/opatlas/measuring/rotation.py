"""How many copies of the weights make each of them cold, and how calls are cut into bursts."""

from __future__ import annotations

from collections.abc import Sequence

MARGIN = 2
"""Bytes touched between two uses of one copy, in cache sizes. Real replacement is not LRU."""


def copies_for_cold(bytes_per_copy: int, cache_bytes: int) -> int:
    """Copies that make the others at least MARGIN times the cache; 1 if there is nothing to rotate."""
    if bytes_per_copy <= 0:
        return 1
    return 1 + -(-MARGIN * cache_bytes // bytes_per_copy)


def bytes_between_uses(order: Sequence[int], bytes_per_copy: int) -> int:
    """Fewest bytes of other copies read between two uses of one copy, when `order` repeats for ever."""
    twice = list(order) * 2
    fewest = len(set(order)) - 1
    for start, copy in enumerate(order):
        end = twice.index(copy, start + 1)
        fewest = min(fewest, len(set(twice[start + 1 : end])))
    return fewest * bytes_per_copy
