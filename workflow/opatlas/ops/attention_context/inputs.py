"""Geometry of prefill attention, the same for every backend."""

from __future__ import annotations

from opatlas.ops.attention_context.case import Case


def windowed(case: Case) -> bool:
    """Whether the window hides anything from any token."""
    return 0 < case.window < case.isl
