"""What a definition takes, and whether a call fits it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from difflib import get_close_matches

from opatlas.interface.sources import Found, Package, members

RECORDS = ("dataclass", "config", "NamedTuple", "BaseModel")
"""Decorators and bases that make a class's annotated fields the parameters of its constructor."""


@dataclass(frozen=True)
class Signature:
    """Parameters less `self`. `required` are those of `names` and `only_named` without a default."""

    names: tuple[str, ...]
    only_named: tuple[str, ...]
    required: frozenset[str]
    any_positional: bool = False
    any_named: bool = False

    def misfit(self, positional: int, keywords: tuple[str, ...], whole: bool) -> str | None:
        """Why a call does not fit; `whole` says that all its arguments are known."""
        if positional > len(self.names) and not self.any_positional:
            return f"takes {len(self.names)} positional arguments, and {positional} are given"
        known = {*self.names, *self.only_named}
        if not self.any_named and (unknown := [name for name in keywords if name not in known]):
            near = get_close_matches(unknown[0], sorted(known), n=3, cutoff=0.4)
            hint = f" (does {' or '.join(map(repr, near))} stand for it?)" if near else ""
            return f"takes no {unknown[0]!r}{hint}"
        missing = self.required - set(self.names[:positional]) - set(keywords)
        if whole and missing:
            return f"needs {sorted(missing)[0]!r} too"
        return None


def signature(package: Package, found: Found, bound: bool) -> Signature | None:
    """The signature of a function or class; None where it cannot be told. `bound`: called on an instance
    or class, so that a first parameter is given already."""
    node = found.node
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        decorators = {_last(decorator) for decorator in node.decorator_list}
        return _of_function(node, bound and "staticmethod" not in decorators)
    if isinstance(node, ast.ClassDef):
        return _of_class(package, found, node)
    return None


def _of_function(node: ast.FunctionDef | ast.AsyncFunctionDef, skip_first: bool) -> Signature:
    arguments = node.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    optional = set(names[len(names) - len(arguments.defaults) :])
    if skip_first:
        names = names[1:]
    named = [argument.arg for argument in arguments.kwonlyargs]
    optional |= {
        name for name, default in zip(named, arguments.kw_defaults, strict=True) if default is not None
    }
    return Signature(
        tuple(names),
        tuple(named),
        frozenset({*names, *named} - optional),
        arguments.vararg is not None,
        arguments.kwarg is not None,
    )


def _of_class(package: Package, found: Found, node: ast.ClassDef) -> Signature | None:
    module = package.module(found.module)
    initialiser = package.find(found.module, f"{node.name}.__init__") if module else None
    if initialiser and isinstance(initialiser.node, ast.FunctionDef):
        return _of_function(initialiser.node, True)
    marks = {_last(mark) for mark in (*node.decorator_list, *node.bases)}
    if not marks & set(RECORDS):
        return None
    names: list[str] = []
    optional: set[str] = set()
    for base in node.bases:
        parent = package.find(found.module, _last(base))
        if not parent or not isinstance(parent.node, ast.ClassDef):
            continue
        if inherited := _of_class(package, parent, parent.node):
            names += [name for name in inherited.names if name not in names]
            optional |= set(inherited.names) - inherited.required
    for name, (member, *_) in members(node).items():
        if isinstance(member, ast.AnnAssign):
            names += [name] if name not in names else []
            optional |= {name} if member.value is not None else set()
    # Fields of what cannot be seen may come on top, and a default may be a field(init=False).
    return Signature(tuple(names), (), frozenset(set(names) - optional), False, package.foreign_base(found))


def _last(node: ast.expr) -> str:
    """The last name of a decorator or base."""
    if isinstance(node, ast.Call):
        return _last(node.func)
    if isinstance(node, ast.Subscript):
        return _last(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
