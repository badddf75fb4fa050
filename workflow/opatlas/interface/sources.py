"""A framework's sources, parsed and never imported: which names there are, and what they take.

Standard library only: this runs inside an image, without a GPU.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

MOST_HOPS = 20
"""Re-exports that are followed for one name."""


@dataclass(frozen=True)
class Found:
    """Where a name leads: a definition in a module; `node` is None for a module itself."""

    module: str
    node: ast.AST | None


class Package:
    """A top-level package that lies in `folder`."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self._modules: dict[str, Module | None] = {}

    @classmethod
    def installed(cls, name: str) -> Package | None:
        """The package that an import would find; None where there is none. Nothing is imported."""
        spec = importlib.util.find_spec(name)
        if spec is None or not spec.submodule_search_locations:
            return None
        return cls(name, Path(next(iter(spec.submodule_search_locations))))

    def module(self, name: str) -> Module | None:
        if name not in self._modules:
            self._modules[name] = self._parse(name)
        return self._modules[name]

    def _parse(self, name: str) -> Module | None:
        first, *rest = name.split(".")
        if first != self.name:
            return None
        path = self.folder.joinpath(*rest)
        for file in (path.with_suffix(".py"), path / "__init__.py") if rest else (path / "__init__.py",):
            if file.is_file():
                return Module(name, file, ast.parse(file.read_text(encoding="utf-8")))
        # A folder without __init__.py is a package too.
        return Module(name, path / "__init__.py", ast.parse("")) if path.is_dir() else None

    def find(self, module: str, path: str, hops: int = 0) -> Found | None:
        """What `path`, a name or names with dots, means in a module; None where it means nothing there."""
        here = self.module(module)
        if here is None or hops > MOST_HOPS:
            return None
        if not path:
            return Found(module, None)
        name, _, rest = path.partition(".")
        for node in here.bindings.get(name, ()):
            if found := self._follow(here, node, name, rest, hops):
                return found
        for star in here.stars:
            if found := self.find(star, path, hops + 1):
                return found
        return self.find(f"{module}.{name}", rest, hops + 1)

    def _follow(self, here: Module, node: ast.AST, name: str, rest: str, hops: int) -> Found | None:
        if isinstance(node, ast.ImportFrom):
            original = next(a.name for a in node.names if (a.asname or a.name) == name)
            source = here.absolute(node)
            if source.partition(".")[0] != self.name:
                return Found(here.name, node)
            wanted = f"{original}.{rest}" if rest else original
            return self.find(source, wanted, hops + 1)
        if isinstance(node, ast.Import):
            return Found(here.name, node)
        if not rest:
            return Found(here.name, node)
        if isinstance(node, ast.ClassDef):
            return self._member(here, node, rest, hops)
        return Found(here.name, node)

    def _member(self, here: Module, node: ast.ClassDef, path: str, hops: int) -> Found | None:
        """A member of a class or of one of its bases."""
        name, _, rest = path.partition(".")
        for member in members(node).get(name, ()):
            if not rest:
                return Found(here.name, member)
            if isinstance(member, ast.ClassDef):
                return self._member(here, member, rest, hops)
            return Found(here.name, member)
        for base in node.bases:
            written = _dotted(base)
            if written is None:
                continue
            found = self.find(here.name, written, hops + 1)
            if found is None or not isinstance(found.node, ast.ClassDef):
                continue
            module = self.module(found.module)
            if module and (inherited := self._member(module, found.node, path, hops + 1)):
                return inherited
        return None

    def foreign_base(self, found: Found, hops: int = 0) -> bool:
        """Whether a class has a base that is not of this package, whose members cannot be seen."""
        if not isinstance(found.node, ast.ClassDef) or hops > MOST_HOPS:
            return False
        for base in found.node.bases:
            written = _dotted(base)
            parent = self.find(found.module, written, hops + 1) if written else None
            if parent is None or not isinstance(parent.node, ast.ClassDef):
                if written not in ("object", "ABC", "Generic", "Protocol", "Enum", "NamedTuple"):
                    return True
            elif self.foreign_base(parent, hops + 1):
                return True
        return False


class Module:
    """One file: what is bound at its top level, branches and attempts included."""

    def __init__(self, name: str, file: Path, tree: ast.Module) -> None:
        self.name = name
        self.file = file
        self.tree = tree

    @cached_property
    def bindings(self) -> dict[str, list[ast.AST]]:
        return _bindings(self.tree.body)

    @cached_property
    def stars(self) -> list[str]:
        return [
            self.absolute(node)
            for node in _statements(self.tree.body)
            if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names)
        ]

    def absolute(self, node: ast.ImportFrom) -> str:
        """The module that a `from ... import` names."""
        if not node.level:
            return node.module or ""
        parts = self.name.split(".")
        up = node.level - (1 if self.file.name == "__init__.py" else 0)
        return ".".join([*parts[: len(parts) - up], *([node.module] if node.module else [])])


def members(node: ast.ClassDef) -> dict[str, list[ast.AST]]:
    """What a class body binds, and what its methods assign to `self`."""
    found = _bindings(node.body)
    methods = [entry for entry in node.body if isinstance(entry, ast.FunctionDef | ast.AsyncFunctionDef)]
    for inner in (inner for method in methods for inner in ast.walk(method)):
        if not isinstance(inner, ast.Attribute) or not isinstance(inner.ctx, ast.Store):
            continue
        if isinstance(inner.value, ast.Name) and inner.value.id == "self":
            found.setdefault(inner.attr, []).append(inner)
    return found


def _bindings(body: list[ast.stmt]) -> dict[str, list[ast.AST]]:
    found: dict[str, list[ast.AST]] = {}
    for node in _statements(body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                found.setdefault(alias.asname or alias.name.partition(".")[0], []).append(node)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        found.setdefault(name.id, []).append(node)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.setdefault(node.target.id, []).append(node)
    return found


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run when a body runs, those in branches, attempts and blocks included."""
    for node in body:
        yield node
        for name in ("body", "orelse", "finalbody", "handlers"):
            if isinstance(node, ast.If | ast.Try | ast.With | ast.For | ast.While):
                for inner in getattr(node, name, ()):
                    yield from _statements(inner.body if isinstance(inner, ast.ExceptHandler) else [inner])


def _dotted(node: ast.expr) -> str | None:
    """`a.b` of a name or attribute, also where it is subscripted."""
    if isinstance(node, ast.Subscript):
        return _dotted(node.value)
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (value := _dotted(node.value)):
        return f"{value}.{node.attr}"
    return None
