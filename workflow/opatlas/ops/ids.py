"""Readable case ids, `gemm/dtype=bfloat16/m=1/n=256/k=5120`, and the way back to the case.

Imported by the worker: standard library only.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any, get_type_hints


@cache
def case_type(op: str) -> Any:
    """The Case class of an op's room; ModuleNotFoundError where there is no such room."""
    return importlib.import_module(f"opatlas.ops.{op}.case").Case


@cache
def formatter(op: str) -> Callable[[Any], str]:
    """A function from a case of this op to its id."""
    pattern = "/".join([op, *(f"{field}=%s" for field in case_type(op)._fields)])
    return pattern.__mod__


def format_id(op: str, case: Any) -> str:
    return formatter(op)(case)


@cache
def _readers(op: str) -> tuple[tuple[str, Callable[[str], Any]], ...]:
    return tuple(get_type_hints(case_type(op)).items())


def parse_id(case_id: str) -> tuple[str, Any]:
    """(op, case) of an id; ValueError when it is not the id of a case."""
    op, *parts = case_id.split("/")
    try:
        readers = _readers(op)
    except ModuleNotFoundError:
        raise ValueError(f"{case_id}: there is no op named {op!r}") from None
    if len(parts) != len(readers):
        raise ValueError(f"{case_id}: {op} has the fields {', '.join(f for f, _ in readers)}")
    values = []
    for part, (field, read) in zip(parts, readers, strict=True):
        name, equals, value = part.partition("=")
        if name != field or not equals:
            raise ValueError(f"{case_id}: expected {field}=..., found {part!r}")
        values.append(read(value))
    return op, case_type(op)(*values)
