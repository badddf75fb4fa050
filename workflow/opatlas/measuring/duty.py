"""The rule that keeps a GPU cool: it works at most a given share of the time."""

from __future__ import annotations


class Duty:
    """After work of t seconds the device rests for t * (1 / share - 1), counted from its end.

    Whatever the host does meanwhile (building inputs, capturing the next case) is part of the rest. Rest
    before the work counts for nothing: with 20 ms of credit clocks dip more often, and repeats differ more.
    """

    def __init__(self, share: float) -> None:
        self._rest_per_work = 1 / share - 1
        self._free_at = float("-inf")

    def wait(self, now: float) -> float:
        """Seconds until work may start again."""
        return max(0.0, self._free_at - now)

    def worked(self, seconds: float, now: float) -> None:
        """Notes work that ended now."""
        self._free_at = max(self._free_at, now) + seconds * self._rest_per_work
