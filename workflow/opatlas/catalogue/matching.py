"""Which cases an entry of the lists in cases/ speaks of: skips, dispatch, unverified, labels, relabels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

from opatlas.config.document import Section, read_yaml
from opatlas.errors import Problems
from opatlas.ops.spec import load_op, op_names

Test = Callable[[Any], bool]
TESTS: Mapping[str, Callable[[Any, Any], bool]] = {
    "min": lambda value, bound: bool(value >= bound),
    "max": lambda value, bound: bool(value <= bound),
    "not": lambda value, other: value not in (other if isinstance(other, list) else [other]),
    "not_multiple_of": lambda value, step: bool(value % step),
}


@dataclass(frozen=True)
class Match:
    """An entry applies to a case when every one of its keys matches; a list matches any item.

    `label` is the entry's place, file and line. `models` are paths or architectures. `where` maps a case
    field to a value, a list of values, or a mapping of `TESTS`.
    """

    label: str
    backends: tuple[str, ...] | None
    ops: tuple[str, ...] | None
    sms: tuple[int, ...] | None
    models: tuple[str, ...] | None
    where: Mapping[str, Any]

    def speaks_of(self, backend: str, sm: int | None) -> bool:
        """Whether cases of a backend on an SM can match at all."""
        return (self.backends is None or backend in self.backends) and (self.sms is None or sm in self.sms)

    def concerns(self, backend: str, op: str, sm: int | None, fields: Sequence[str]) -> bool:
        """Whether cases of this op can match at all."""
        return (
            self.speaks_of(backend, sm)
            and (self.ops is None or op in self.ops)
            and all(field in fields for field in self.where)
        )

    def tests(self) -> list[tuple[str, Test]]:
        """(field, test of its value) for each field condition; all of them must hold."""
        return [(field, test_of(condition)) for field, condition in self.where.items()]


def test_of(condition: Any) -> Test:
    """The test of a value that a condition stands for."""
    if isinstance(condition, dict):
        return lambda value: all(TESTS[name](value, bound) for name, bound in condition.items())
    wanted = condition if isinstance(condition, list) else [condition]
    return lambda value: value in wanted


def entries(path: Path, problems: Problems) -> list[tuple[str, Section]]:
    """(place, mapping) of each entry of a file that is one list; the place is as in cases/skips.yaml:12."""
    file = f"cases/{path.name}"
    content: Any = None
    with problems.collecting():
        content = read_yaml(path, file)
    top = Section({path.stem: content if content is not None else []}, file, problems)
    return [(_place(file, entry, number), entry) for number, entry in enumerate(top.records(path.stem))]


def _place(file: str, entry: Section, number: int) -> str:
    line = min((line for key in entry if (line := entry.line(key)) is not None), default=None)
    return f"{file}[{number}]" if line is None else f"{file}:{line}"


def read(record: Section, label: str) -> Match:
    """The matching keys of one entry; what cannot be right goes to the record's problems."""
    ops = several(record, "op")
    for op in ops or ():
        if op not in op_names():
            record.wrong("op", f"there is no op {op!r}; known: {', '.join(op_names())}")
    return Match(
        label,
        several(record, "backend"),
        ops,
        tuple(_integers(record, "sm")) if "sm" in record else None,
        several(record, "model"),
        conditions(record, "where", ops) if "where" in record else {},
    )


def conditions(record: Section, key: str, ops: tuple[str, ...] | None) -> dict[str, Any]:
    """The mapping of case fields to conditions under a key of an entry; mistakes go to its problems."""
    found = record.raw(key)
    if not isinstance(found, dict):
        record.wrong(key, f"expected a mapping of case fields, found {found!r}")
        return {}
    for field, condition in found.items():
        _check_condition(record, key, ops, field, condition)
    return dict(found)


def several(record: Section, key: str) -> tuple[str, ...] | None:
    """The texts of a key that may hold one or a list; None where it is absent."""
    if key not in record:
        return None
    return tuple(record.texts(key) if isinstance(record.raw(key), list) else [record.text(key)])


def _integers(record: Section, key: str) -> list[int]:
    return record.integers(key) if isinstance(record.raw(key), list) else [record.integer(key)]


def _check_condition(
    record: Section, key: str, ops: tuple[str, ...] | None, field: Any, condition: Any
) -> None:
    known = [op for op in (op_names() if ops is None else ops) if op in op_names()]
    kinds = {op: get_type_hints(load_op(op).case).get(field) for op in known}
    if ops is None and not any(kinds.values()):
        record.wrong(key, f"no op has a field {field!r}")
    for op, kind in kinds.items():
        if kind is None and ops is not None:
            record.wrong(key, f"{op} has no field {field!r}; fields: {', '.join(load_op(op).fields)}")
    types = {kind for kind in kinds.values() if kind is not None}
    for value, numeric in _values(record, key, field, condition):
        if numeric and types and types != {int}:
            record.wrong(key, f"{field}: is a text, so it has no min, max or multiple")
        elif not isinstance(value, (str, int)) or isinstance(value, bool):
            record.wrong(key, f"{field}: expected a text or a whole number, found {value!r}")
        elif types and not isinstance(value, tuple(types)):
            record.wrong(key, f"{field}: no value of this field can be {value!r}")


def _values(record: Section, key: str, field: Any, condition: Any) -> list[tuple[Any, bool]]:
    """Every value a condition compares with, and whether it needs a number."""
    if not isinstance(condition, dict):
        return [(value, False) for value in (condition if isinstance(condition, list) else [condition])]
    values = []
    for test, bound in condition.items():
        if test not in TESTS:
            record.wrong(key, f"{field}: there is no test {test!r}; known: {', '.join(TESTS)}")
        elif test == "not":
            values += [(value, False) for value in (bound if isinstance(bound, list) else [bound])]
        elif not isinstance(bound, int) or isinstance(bound, bool):
            record.wrong(key, f"{field}.{test}: expected a whole number, found {bound!r}")
        elif test == "not_multiple_of" and bound < 1:
            record.wrong(key, f"{field}.{test}: must be at least 1, found {bound}")
        else:
            values.append((bound, True))
    return values
