"""Readable case ids, `gemm/dtype=bfloat16/m=1/n=256/k=5120`, and the way back to the case.

A field with a default is left out of the id while it has it, so an op can gain one without new ids.
Imported by the worker: standard library only.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from functools import cache
from typing import Any, get_type_hints

# Values may hold slashes (a model's path does), so parts begin where a field's name does.
PART = re.compile(r"/(?=[a-z][a-z0-9_]*=)")


@cache
def case_type(op: str) -> Any:
    """The Case class of an op's room; ModuleNotFoundError where there is no such room."""
    return importlib.import_module(f"opatlas.ops.{op}.case").Case


@cache
def formatter(op: str) -> Callable[[Any], str]:
    """A function from a case of this op to its id."""
    fields, defaults = case_type(op)._fields, case_type(op)._field_defaults
    required = len(fields) - len(defaults)
    pattern = "/".join([op, *(f"{field}=%s" for field in fields[:required])])
    if not defaults:
        return pattern.__mod__
    optional = [(index, fields[index], defaults[fields[index]]) for index in range(required, len(fields))]

    def write(case: Any) -> str:
        given = [f"/{field}={case[index]}" for index, field, default in optional if case[index] != default]
        return f"{pattern % case[:required]}{''.join(given)}"

    return write


def format_id(op: str, case: Any) -> str:
    return formatter(op)(case)


def parse_id(case_id: str) -> tuple[str, Any]:
    """(op, case) of an id; ValueError when it is not the id of a case."""
    op, *parts = PART.split(case_id)
    try:
        kind = case_type(op)
    except ModuleNotFoundError:
        raise ValueError(f"{case_id}: there is no op named {op!r}") from None
    readers = get_type_hints(kind)
    given = dict(part.split("=", 1) for part in parts)
    required = [field for field in kind._fields if field not in kind._field_defaults]
    if [field for field in kind._fields if field in given] != [part.partition("=")[0] for part in parts]:
        raise ValueError(f"{case_id}: {op} has the fields {', '.join(kind._fields)}, in this order")
    if missing := [field for field in required if field not in given]:
        raise ValueError(f"{case_id}: {', '.join(missing)} is missing")
    case = kind(**{field: readers[field](value) for field, value in given.items()})
    if format_id(op, case) != case_id:
        raise ValueError(f"{case_id}: is not written as an id is: {format_id(op, case)}")
    return op, case
