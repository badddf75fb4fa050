"""cases/skips.yaml: the one list of what is left out of a plan, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from opatlas.config.document import Section, read_yaml
from opatlas.errors import Problems

# The only reasons for leaving a case out; everything else runs and has its failure recorded.
REASONS = ("mismeasured", "kills", "fails_whole", "unserved")
TESTS: Mapping[str, Callable[[Any, Any], bool]] = {
    "min": lambda value, bound: bool(value >= bound),
    "max": lambda value, bound: bool(value <= bound),
    "not": lambda value, other: value not in (other if isinstance(other, list) else [other]),
    "not_multiple_of": lambda value, step: bool(value % step),
}


@dataclass(frozen=True)
class Skip:
    """One entry: it applies to a case when every one of its keys matches; a list matches any item."""

    label: str
    why: str
    reason: str
    backends: tuple[str, ...] | None
    ops: tuple[str, ...] | None
    sms: tuple[int, ...] | None
    models: tuple[str, ...] | None
    where: Mapping[str, Any]

    def concerns(self, backend: str, op: str, sm: int | None, fields: Sequence[str]) -> bool:
        """Whether cases of this op can match at all."""
        return (
            (self.backends is None or backend in self.backends)
            and (self.ops is None or op in self.ops)
            and (self.sms is None or sm in self.sms)
            and all(field in fields for field in self.where)
        )

    def matcher(self, fields: Sequence[str]) -> Callable[[Any], bool]:
        """A test of a case of an op with these fields, on the entry's field conditions alone."""
        tests = [
            (fields.index(field), test)
            for field, condition in self.where.items()
            for test in _tests(condition)
        ]
        if len(tests) == 1:
            index, only = tests[0]
            return lambda case: only(case[index])
        return lambda case: all(test(case[index]) for index, test in tests)


def _tests(condition: Any) -> list[Callable[[Any], bool]]:
    if isinstance(condition, dict):
        return [partial(_holds, TESTS[name], bound) for name, bound in condition.items()]
    wanted = frozenset(condition if isinstance(condition, list) else [condition])
    return [lambda value: value in wanted]


def _holds(test: Callable[[Any, Any], bool], bound: Any, value: Any) -> bool:
    return test(value, bound)


def load(path: Path, problems: Problems) -> list[Skip]:
    """Every entry of the list; every mistake goes to `problems`."""
    name = "cases/skips.yaml"
    entries: Any = None
    with problems.collecting():
        entries = read_yaml(path, name)
    top = Section({"skips": entries if entries is not None else []}, name, problems)
    return [_skip(record, number) for number, record in enumerate(top.records("skips"), start=1)]


def _skip(record: Section, number: int) -> Skip:
    where = record.raw("where", {})
    if not isinstance(where, dict):
        record.wrong("where", f"expected a mapping of case fields, found {where!r}")
        where = {}
    for field, condition in where.items():
        for test, bound in condition.items() if isinstance(condition, dict) else ():
            if test not in TESTS:
                record.wrong("where", f"{field}: there is no test {test!r}; known: {', '.join(TESTS)}")
            elif test != "not" and (isinstance(bound, bool) or not isinstance(bound, int)):
                record.wrong("where", f"{field}.{test}: expected a whole number, found {bound!r}")
    skip = Skip(
        label=f"skips[{number}]",
        why=record.choice("why", REASONS),
        reason=record.text("reason"),
        backends=_several(record, "backend"),
        ops=_several(record, "op"),
        sms=tuple(record.integers("sm")) if "sm" in record else None,
        models=_several(record, "model"),
        where=dict(where),
    )
    record.done()
    return skip


def _several(record: Section, key: str) -> tuple[str, ...] | None:
    if key not in record:
        return None
    return tuple(record.texts(key) if isinstance(record.raw(key), list) else [record.text(key)])
