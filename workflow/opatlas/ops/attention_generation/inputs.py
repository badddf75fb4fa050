"""Geometry of decode attention, the same for every backend."""

from __future__ import annotations

from opatlas.ops.attention_generation.case import Case


def keys_read(case: Case) -> int:
    """Keys that the new token of a sequence attends to."""
    return min(case.window, case.kv_len) if case.window else case.kv_len


def kv_bytes(case: Case, itemsize: int) -> int:
    """Bytes of keys and values that one call reads."""
    return 2 * case.batch * keys_read(case) * case.kv_heads * case.head_dim * itemsize
