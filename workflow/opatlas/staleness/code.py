"""Which of this project's modules can change a latency, and a hash of what each of them says.

The walk starts at what a worker imports for one op of one backend and follows every import of this
project, also those inside functions. Comments, docstrings and formatting don't count, and the hash
of a module is the same on Python 3.10 to 3.14.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from opatlas.errors import UserError

PACKAGE = "opatlas"
FOLDER = Path(__file__).resolve().parent.parent

# What carries cases and results to and fro but cannot change how long a case takes. A worker that imports
# anything which is neither here nor in its fingerprint refuses.
HARNESS = frozenset(
    {f"{PACKAGE}.errors", f"{PACKAGE}.files"}
    | {
        f"{PACKAGE}.harness.{name}"
        for name in (
            "attempt",
            "classify",
            "failures",
            "journal",
            "linux",
            "log",
            "processes",
            "proofs",
            "protocol",
            "receipt",
            "signals",
            "supervisor",
            "ticket",
            "workers",
        )
    }
)

# Fields of syntax nodes that differ between Python versions without a change of meaning.
UNSTABLE_FIELDS = frozenset({"ctx", "kind", "type_comment", "type_params"})


def roots(backend: str, op: str) -> list[str]:
    """The modules that a worker imports by name for one op of one backend."""
    return [
        f"{PACKAGE}.harness.worker",
        f"{PACKAGE}.harness.environment",
        f"{PACKAGE}.backends.{backend}.runtime",
        f"{PACKAGE}.backends.{backend}.{op}",
        f"{PACKAGE}.ops.{op}.case",
    ]


def has_runner(backend: str, op: str) -> bool:
    return module_file(f"{PACKAGE}.backends.{backend}.{op}") is not None


def worker_modules(backend: str, op: str) -> dict[str, str]:
    """Module -> hash of every module of this project that can change a latency of this op."""
    return closure(tuple(roots(backend, op)), HARNESS)


@cache
def closure(roots: tuple[str, ...], without: frozenset[str] = frozenset()) -> dict[str, str]:
    """Module -> hash of `roots` and of all that they import of this project, in order of the names."""
    found: dict[str, str] = {}
    waiting = list(roots)
    while waiting:
        module = waiting.pop()
        if module in found or module in without:
            continue
        found[module] = _module_hash(module)
        waiting.extend(imports(module))
    return dict(sorted(found.items()))


@cache
def _module_hash(module: str) -> str:
    tree = _tree(module)
    if tree is None:
        raise UserError(f"{module}: there is no such module in workflow/, and a worker imports it")
    return _tree_hash(tree)


@cache
def imports(module: str) -> tuple[str, ...]:
    """Modules of this project that importing `module` runs or may run, its packages included."""
    path, tree = module_file(module), _tree(module)
    if path is None or tree is None:
        return ()
    names: set[str] = set(_packages(module))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _base(module, path.name == "__init__.py", node)
            names.add(base)
            names.update(f"{base}.{alias.name}" for alias in node.names)
    ours = {name for name in names if name == PACKAGE or name.startswith(f"{PACKAGE}.")}
    with_packages = {part for name in ours for part in (*_packages(name), name)} - {module}
    return tuple(sorted(name for name in with_packages if module_file(name) is not None))


def _packages(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts))]


def _base(module: str, is_package: bool, node: ast.ImportFrom) -> str:
    """The absolute module that a `from ... import` names."""
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    up = node.level - (1 if is_package else 0)
    return ".".join([*(parts[: len(parts) - up]), *([node.module] if node.module else [])])


@cache
def module_file(module: str) -> Path | None:
    """The file of a module of this project, None when there is none."""
    path = FOLDER.parent.joinpath(*module.split("."))
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


@cache
def _tree(module: str) -> ast.Module | None:
    path = module_file(module)
    return _parse(path.read_text(encoding="utf-8"), str(path)) if path else None


def _parse(text: str, place: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError as error:
        raise UserError(f"{place}:{error.lineno}: is not valid Python: {error.msg}") from None


def source_hash(text: str, place: str = "source") -> str:
    """sha256 over what a module says, without comments, docstrings and formatting."""
    return _tree_hash(_parse(text, place))


def _tree_hash(tree: ast.Module) -> str:
    digest = hashlib.sha256()
    for piece in _canonical(tree):
        digest.update(piece.encode())
        digest.update(b"\0")
    return digest.hexdigest()


def _canonical(node: Any) -> Iterator[str]:
    if isinstance(node, ast.AST):
        yield f"({type(node).__name__}"
        for name in sorted(node._fields):
            value = getattr(node, name, None)
            if name in UNSTABLE_FIELDS and not (name == "type_params" and value):
                continue
            if name == "body" and isinstance(value, list):
                value = _without_docstring(node, value)
            if isinstance(node, ast.JoinedStr) and name == "values":
                value = _joined(node.values)
            if value is None or value == []:
                continue
            yield name
            yield from _canonical(value)
        yield ")"
    elif isinstance(node, list):
        yield "["
        for item in node:
            yield from _canonical(item)
        yield "]"
    else:
        yield f"{type(node).__name__}:{node!r}"


def _without_docstring(node: ast.AST, body: list[Any]) -> list[Any]:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    if isinstance(node, documented) and body and isinstance(body[0], ast.Expr):
        first = body[0].value
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            # A body of nothing but a docstring means the same as one of nothing but `pass`.
            return body[1:] or ([] if isinstance(node, ast.Module) else [ast.Pass()])
    return body


def _joined(values: list[Any]) -> list[Any]:
    """Parts of an f-string with neighbouring texts as one, however they were written."""
    joined: list[Any] = []
    for value in values:
        text = isinstance(value, ast.Constant) and isinstance(value.value, str)
        if text and joined and isinstance(joined[-1], ast.Constant):
            joined[-1] = ast.Constant(joined[-1].value + value.value)
        elif not text or value.value:
            joined.append(value)
    return joined
