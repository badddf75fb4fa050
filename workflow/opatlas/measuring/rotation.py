"""How many copies of the weights make each of them cold, and how their turns are cut into bursts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

MARGIN = 2
"""Bytes touched between two uses of one copy, in cache sizes. Real replacement is not LRU."""

MOST_CALLS = 64
"""Calls of one burst: more cost host time without making the mean over them more exact."""


@dataclass(frozen=True)
class Rotation:
    """`orders` holds, for each burst in turn, the numbers of its calls.

    Where rotation alone cannot make the copies cold (`evict`), MARGIN caches of other data are read
    before each burst, then each set of activations is made warm by one of the calls of `lead`; and no
    copy is used twice from then on.
    """

    orders: tuple[tuple[int, ...], ...]
    evict: bool
    bytes_between_uses: int
    lead: tuple[int, ...] = ()


PLACES = 8
"""Places in memory over which a latency is meant to be a mean: some are up to 8 % slower than others."""


def sets_for_warm(bytes_per_call: int, cache_bytes: int) -> int:
    """Sets of activations such that half the cache holds what is touched between two uses of one."""
    return max(1, min(PLACES, cache_bytes // 2 // max(1, bytes_per_call)))


def copies_for_cold(bytes_per_copy: int, cache_bytes: int) -> int:
    """Copies that make the others at least MARGIN times the cache; 1 if there is nothing to rotate."""
    if bytes_per_copy <= 0:
        return 1
    return 1 + -(-MARGIN * cache_bytes // bytes_per_copy)


def bytes_between_uses(order: Sequence[int], bytes_per_copy: int) -> int:
    """Fewest bytes of other copies read between two uses of one copy, when `order` repeats for ever."""
    last: dict[int, int] = {}
    fewest = len(set(order)) - 1
    twice = list(order) * 2
    for position, copy in enumerate(twice):
        if copy in last:
            fewest = min(fewest, len(set(twice[last[copy] + 1 : position])))
        last[copy] = position
    return fewest * bytes_per_copy


def cut(
    copies: int,
    bytes_per_copy: int,
    sets: int,
    cache_bytes: int,
    call_s: float,
    sample_s: float,
    burst_s: float,
) -> Rotation:
    """Bursts of about `sample_s`, at most `burst_s` unless one call is longer, every copy cold.

    `call_s` is the estimated time of one call; only its power of two counts, so that estimates that
    differ a little lead to the same bursts. Copies are used in turn, over as many bursts as that
    takes; the copies between two uses of one must be MARGIN caches, or else the cache is evicted.
    """
    aim = max(1, min(MOST_CALLS, 2 ** round(log2(sample_s / call_s)) if call_s < sample_s else 1))
    most = max(1, min(MOST_CALLS, int(burst_s / call_s)))
    if copies < copies_for_cold(bytes_per_copy, cache_bytes):
        calls = max(1, min(aim, copies - sets))
        lead = tuple(range(calls, calls + sets))
        return Rotation((tuple(range(calls)),), True, MARGIN * cache_bytes, lead)
    rounds = max(1, min(-(-aim // copies), most // copies))
    turn = range(rounds * copies)
    bursts = -(-len(turn) // most)
    size, longer = divmod(len(turn), bursts)
    orders, start = [], 0
    for burst in range(bursts):
        end = start + size + (burst < longer)
        orders.append(tuple(turn[start:end]))
        start = end
    between = bytes_between_uses([call % copies for call in turn], bytes_per_copy)
    assert not bytes_per_copy or between >= MARGIN * cache_bytes
    return Rotation(tuple(orders), False, between)
