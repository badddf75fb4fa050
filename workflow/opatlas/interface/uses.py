"""What the files of a backend use of its framework, found in their sources.

Imports, attributes of what is imported, calls with their arguments, and places that comments and
docstrings cite (`vllm/config/vllm.py, VllmConfig`) are found by themselves. What is used of objects
that the framework hands out is declared by the backend, in DECLARATION, as it cannot be seen.
"""

from __future__ import annotations

import ast
import importlib.util
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DECLARATION = "uses.py"
"""The file of a backend that names its PACKAGE, and the USES that cannot be seen. A backend without it
is not checked."""

ANY = -1
"""Positional arguments of a use that is no call."""


@dataclass(frozen=True)
class Use:
    """A symbol of a module, and the arguments that it is called with, if it is called."""

    place: str
    module: str
    path: str
    positional: int = ANY
    keywords: tuple[str, ...] = ()
    whole: bool = True
    bound: bool = False

    @property
    def called(self) -> bool:
        return self.positional != ANY


def uses_of(folder: Path, package: str) -> list[Use]:
    """What can be seen in the files of a backend's folder of their use of `package`."""
    found: list[Use] = []
    for file in sorted(folder.glob("*.py")):
        if file.name != DECLARATION:
            text = file.read_text(encoding="utf-8")
            found += seen(text, file.name, package)
            found += cited(text, file.name, package)
    return found


def seen(text: str, place: str, package: str) -> list[Use]:
    """Imports of the package, and what is done with them."""
    tree = ast.parse(text)
    origin: dict[str, tuple[str, str]] = {}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == package:
            for alias in node.names:
                origin[alias.asname or alias.name] = (node.module or "", alias.name)
                found.append(Use(f"{place}:{node.lineno}", node.module or "", alias.name))
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == package:
                    origin[alias.asname or package] = (alias.name if alias.asname else package, "")
                    found.append(Use(f"{place}:{node.lineno}", alias.name, ""))
    calls = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name | ast.Attribute) or id(node) in inner:
            continue
        names = _chain(node)
        if not names or names[0] not in origin:
            continue
        module, symbol = origin[names[0]]
        path = ".".join(filter(None, [symbol, *names[1:]]))
        where = f"{place}:{node.lineno}"
        if call := calls.get(id(node)):
            plain = [argument for argument in call.args if not isinstance(argument, ast.Starred)]
            keywords = tuple(keyword.arg for keyword in call.keywords if keyword.arg)
            whole = len(plain) == len(call.args) and len(keywords) == len(call.keywords)
            bound = len(names) > 1 and bool(symbol)
            found.append(Use(where, module, path, len(plain), keywords, whole, bound))
        elif len(names) > 1:
            found.append(Use(where, module, path))
    return found


CITATION = re.compile(r"(?P<file>[a-z_]\w*(?:/\w+)*\.py),\s+(?P<symbol>[A-Za-z_][\w.]*\w)")


def cited(text: str, place: str, package: str) -> Iterator[Use]:
    """Places that comments and docstrings name: a file of the package, a comma, a symbol."""
    for line, prose in _prose(text):
        for match in CITATION.finditer(prose):
            file, symbol = match["file"], match["symbol"]
            if file.startswith(f"{package}/"):
                module = file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
                yield Use(f"{place}:{line}", module, symbol)


def _prose(text: str) -> Iterator[tuple[int, str]]:
    """Comments (those of adjoining lines as one) and strings, with their first lines."""
    block: list[str] = []
    first = last = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.STRING:
            yield token.start[0], " ".join(token.string.split())
        elif token.type == tokenize.COMMENT:
            if block and token.start[0] != last + 1:
                yield first, " ".join(block)
                block = []
            first = first if block else token.start[0]
            last = token.start[0]
            block.append(token.string.lstrip("# ").strip())
    if block:
        yield first, " ".join(block)


def declaration(folder: Path) -> tuple[str, list[Use]]:
    """The package that a backend rests on, and the uses that it declares."""
    spec = importlib.util.spec_from_file_location("opatlas_declared_uses", folder / DECLARATION)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = []
    for symbol, *arguments in module.USES:
        name, _, path = symbol.partition(":")
        positional, *keywords = arguments or [ANY]
        place = f"{DECLARATION}: {symbol}"
        found.append(Use(place, name, path, positional, tuple(keywords), bool(arguments), True))
    return module.PACKAGE, found


def _chain(node: ast.expr) -> list[str]:
    """The names of `a.b.c`, [] for anything else."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute) and (before := _chain(node.value)):
        return [*before, node.attr]
    return []
