"""What all ops of the stub do: a case's latency is made from its own fields, the same on every machine."""

from __future__ import annotations

import zlib
from typing import Any

from opatlas.measuring.call import Call


def latency(case: Any) -> float:
    """Milliseconds, between 0.01 and 0.11."""
    return 0.01 + zlib.crc32(repr(tuple(case)).encode()) / 2**32 / 10


def build(case: Any, device: Any) -> Any:
    return object()


def call(built: Any, case: Any, device: Any) -> Call:
    return Call(run=lambda i: latency(case))


def kernel_source(built: Any, case: Any) -> str:
    return "stub"
