"""What a case ends with when it cannot yield a latency that may be stored."""

from __future__ import annotations

REASONS = (
    "constant_input",
    "contended",
    "host_bound",
    "no_write",
    "throttled",
    "unstable",
    "wrong_kernel",
)


class InvalidMeasurement(Exception):
    """Something ran, but its time is not what the row would say. `reason` is one of REASONS."""

    def __init__(self, reason: str, message: str) -> None:
        assert reason in REASONS, reason
        super().__init__(f"{reason}: {message}")
        self.reason = reason


class KernelLimit(Exception):
    """A runner's own capacity or limit check said no, before anything was allocated.

    The message holds the arithmetic and the source of the limit.
    """


class Unsupported(Exception):
    """The framework says by a flag, not by an exception, that it does not do this case."""
