"""The rule that keeps a GPU cool: it works at most a given share of the time."""

from __future__ import annotations


class Duty:
    """After work of t seconds the device rests for t * (1 / share - 1).

    Rest may come before the work too, up to `credit_s`: the power controller averages over far longer, so
    what counts is the share over some tens of milliseconds. Whatever the host does while the device is
    idle (building inputs, planning and capturing the next case) is rest.
    """

    def __init__(self, share: float, credit_s: float) -> None:
        self._rest_per_work = 1 / share - 1
        self._credit_s = credit_s
        self._free_at = float("-inf")

    def wait(self, now: float) -> float:
        """Seconds until work may start again."""
        return max(0.0, self._free_at - now)

    def worked(self, seconds: float, now: float) -> None:
        """Notes work that ended now."""
        owed = max(self._free_at - (now - seconds), -self._credit_s)
        self._free_at = now + owed + seconds * self._rest_per_work
