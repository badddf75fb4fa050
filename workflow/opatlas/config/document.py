"""YAML files read strictly: every mistake is collected, each with file, line, key and what is right."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml

from opatlas.errors import Problems, UserError

T = TypeVar("T")
REQUIRED: Any = object()
# Consumers read the whole numbers of a table as 32 bits.
LARGEST = 2**32 - 1


class Mapping(dict[Any, Any]):
    """A YAML mapping that knows the line of each of its keys; None for a key given with --config."""

    lines: dict[Any, int | None]


class _Loader(yaml.CSafeLoader):
    pass


def _construct_mapping(loader: _Loader, node: yaml.MappingNode) -> Mapping:
    mapping = Mapping()
    mapping.lines = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        line = key_node.start_mark.line + 1
        if not isinstance(key, (str, int, float, bool)) and key is not None:
            raise yaml.YAMLError(f"line {line}: a key must be a plain word, found {key!r}")
        if key in mapping:
            raise yaml.YAMLError(f"line {line}: {key!r} stands twice in one mapping")
        mapping[key] = loader.construct_object(value_node, deep=True)
        mapping.lines[key] = line
    return mapping


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _construct_mapping)


def read_yaml(path: Path, name: str | None = None) -> Any:
    """The content of a YAML file; `name` is what messages call it (its path by default)."""
    name = name or str(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"{name}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{name}: cannot be read: {error}") from None
    try:
        return yaml.load(text, Loader=_Loader)
    except RecursionError:
        raise UserError(f"{name}: is nested too deeply") from None
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark else ""
        what = getattr(error, "problem", None) or str(error)
        raise UserError(f"{name}: is not valid YAML: {where}{what}") from None


class Section:
    """One mapping of a document with typed, checked access to its keys.

    Every getter reports what is wrong to `problems` and returns a harmless value of the right type, so
    that one pass finds all mistakes; nothing read may be used before `problems.raise_if_any()`.
    """

    def __init__(self, value: Any, where: str, problems: Problems, path: str = "") -> None:
        self.problems = problems
        self.where = where
        self.path = path
        self._seen: set[str] = set()
        self._lines: dict[Any, int | None] = getattr(value, "lines", {})
        self._map: dict[str, Any] = {}
        if value is None:
            return
        if not isinstance(value, dict):
            problems.add(f"{where}: {path or 'the file'}: expected a mapping, found {value!r}")
            return
        for key, item in value.items():
            if isinstance(key, str):
                self._map[key] = item
            else:
                self.wrong(str(key), f"is read as the {_kind(key)} {key!r}: write it in quotes", key)

    @classmethod
    def read(cls, path: Path, problems: Problems, name: str | None = None) -> Section:
        """The top mapping of a file; unreadable or malformed files become a problem."""
        value: Any = None
        with problems.collecting():
            value = read_yaml(path, name)
        return cls(value, name or str(path), problems)

    def __contains__(self, key: str) -> bool:
        return key in self._map

    def __iter__(self) -> Iterator[str]:
        return iter(self._map)

    def line(self, key: str) -> int | None:
        return self._lines.get(key)

    def at(self, key: str, line_key: Any = None) -> str:
        """`file:line: a.b.key`, the place that messages name."""
        key_in_file = key if line_key is None else line_key
        line = self._lines.get(key_in_file)
        place = f"{self.where}:{line}" if line else self.where
        if line is None and key_in_file in self._lines:
            place = "--config"
        return f"{place}: {self.path}{'.' if self.path else ''}{key}"

    def wrong(self, key: str, what: str, line_key: Any = None) -> None:
        self.problems.add(f"{self.at(key, line_key)}: {what}")

    def raw(self, key: str, default: Any = REQUIRED) -> Any:
        self._seen.add(key)
        if key not in self._map:
            if default is REQUIRED:
                self.wrong(key, "is missing")
                return None
            return default
        return self._map[key]

    def _typed(self, key: str, kind: type[T], expected: str, default: Any, empty: T) -> T:
        value = self.raw(key, default)
        if key not in self._map:
            return empty if default is REQUIRED else value
        if (isinstance(value, bool) and kind is not bool) or not isinstance(value, kind):
            hint = ": write it in quotes" if kind is str and not isinstance(value, (dict, list)) else ""
            self.wrong(key, f"expected {expected}, found {_kind(value)} {value!r}{hint}")
            return empty
        return value

    def text(self, key: str, default: Any = REQUIRED) -> str:
        return self._typed(key, str, "a text", default, "")

    def flag(self, key: str, default: Any = REQUIRED) -> bool:
        return self._typed(key, bool, "true or false", default, False)

    def integer(self, key: str, default: Any = REQUIRED, minimum: int | None = None) -> int:
        value = self._typed(key, int, "a whole number", default, 0)
        if key in self._map and minimum is not None and isinstance(value, int) and value < minimum:
            self.wrong(key, f"must be at least {minimum}, found {value}")
        elif key in self._map and isinstance(value, int) and abs(value) > LARGEST:
            self.wrong(key, f"must be at most {LARGEST}, found {_shown(value)}")
            return 0
        return value

    def number(self, key: str, default: Any = REQUIRED, above: float | None = None) -> float:
        value: Any = self._typed(key, (int, float), "a number", default, 0.0)  # type: ignore[arg-type]
        given = key in self._map and self._map[key] is value
        if given and not -sys.float_info.max <= value <= sys.float_info.max:
            self.wrong(key, f"must be a finite number, found {_shown(value)}")
            return 0.0
        if given and above is not None and not value > above:
            self.wrong(key, f"must be above {above:g}, found {value}")
        return value  # type: ignore[no-any-return]

    def choice(self, key: str, options: Sequence[str], default: Any = REQUIRED) -> str:
        value = self.text(key, default)
        if key in self._map and value and value not in options:
            self.wrong(key, f"expected one of {', '.join(options)}, found {value!r}")
        return value

    def texts(self, key: str, default: Any = REQUIRED) -> list[str]:
        return self._items(key, str, "texts", default)

    def integers(self, key: str, default: Any = REQUIRED) -> list[int]:
        return self._items(key, int, "whole numbers", default)

    def _items(self, key: str, kind: type[T], expected: str, default: Any) -> list[T]:
        value = self._typed(key, list, f"a list of {expected}", default, [])
        if key not in self._map:
            return value
        for item in value:
            if not isinstance(item, kind) or isinstance(item, bool):
                hint = ": write it in quotes" if kind is str else ""
                self.wrong(key, f"expected a list of {expected}, found {_kind(item)} {item!r}{hint}")
                return []
            if isinstance(item, int) and abs(item) > LARGEST:
                self.wrong(key, f"must be at most {LARGEST}, found {_shown(item)}")
                return []
        if len(set(value)) != len(value):
            twice = next(item for item in value if value.count(item) > 1)
            self.wrong(key, f"{twice!r} stands twice in the list")
        return value

    def section(self, key: str, default: Any = REQUIRED) -> Section:
        value = self.raw(key, default)
        child = Section(value, self.where, self.problems, f"{self.path}{'.' if self.path else ''}{key}")
        return child

    def sections(self) -> Iterator[tuple[str, Section]]:
        """Every key of this mapping with its value as a section."""
        for key in self._map:
            yield key, self.section(key)

    def records(self, key: str, default: Any = REQUIRED) -> list[Section]:
        """A list of mappings, each as a section named key[0], key[1], ..."""
        value = self._typed(key, list, "a list of mappings", default, [])
        path = f"{self.path}{'.' if self.path else ''}{key}"
        return [
            Section(item, self.where, self.problems, f"{path}[{index}]") for index, item in enumerate(value)
        ]

    def done(self) -> None:
        """Reports the keys that nothing asked for."""
        for key in self._map:
            if key not in self._seen:
                near = difflib.get_close_matches(key, self._seen, n=1)
                known = ", ".join(sorted(self._seen))
                hint = f"did you mean {near[0]}?" if near else f"known keys: {known}"
                self.wrong(key, f"is not a known key; {hint}")


def _shown(value: float) -> str:
    """A number in a message; one of too many digits to read by its bits."""
    if isinstance(value, int) and value.bit_length() > 64:
        return f"a number of {value.bit_length()} bits"
    return str(value)


def _kind(value: Any) -> str:
    names = {bool: "truth value", int: "number", float: "number", str: "text", list: "list"}
    return "mapping" if isinstance(value, dict) else names.get(type(value), type(value).__name__)
