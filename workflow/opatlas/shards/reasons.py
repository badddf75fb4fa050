"""Why a shard is stale: what differs between its plan and the nearest file that exists."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from opatlas.errors import UserError
from opatlas.shards import file
from opatlas.shards.state import ShardState


def why(root: Path, state: ShardState) -> str:
    """One phrase for people."""
    if state.damage:
        return f"damaged: {state.damage}"
    manifests = [m for m in _manifests((root / state.shard.path).parent) if m["shard"] == state.shard.name]
    manifests = manifests or list(_manifests((root / state.shard.path).parent))
    wanted = state.shard.context
    if any(m["context_fingerprint"] == wanted.fingerprint for m in manifests):
        if not state.missing:
            return "regrouped: every row exists"
        return "cases were added" if len(state.missing) < len(state.shard.keys) else "new cases"
    if not manifests:
        return "never measured" if len(state.missing) == len(state.shard.keys) else "not complete yet"
    nearest = min(manifests, key=lambda manifest: len(_changes(wanted.parts, manifest["context"])))
    return "changed: " + ", ".join(_changes(wanted.parts, nearest["context"]))


def _changes(new: Mapping[str, Any], old: Mapping[str, Any]) -> list[str]:
    """The parts of a context that differ, code by module."""
    changes = []
    for part in sorted(new.keys() | old.keys()):
        mine, other = new.get(part), old.get(part)
        if mine == other:
            continue
        if part == "code" and isinstance(mine, Mapping) and isinstance(other, Mapping):
            modules = sorted(m for m in mine.keys() | other.keys() if mine.get(m) != other.get(m))
            changes += [module.removeprefix("opatlas.") for module in modules]
        elif part == "measure" and isinstance(mine, Mapping) and isinstance(other, Mapping):
            changes += [f"measure.{key}" for key in sorted(mine) if mine.get(key) != other.get(key)]
        else:
            changes.append("image" if part == "runtime" else part)
    return changes


@cache
def _manifests(folder: Path) -> tuple[Mapping[str, Any], ...]:
    found = []
    for path in file.shard_files(folder):
        try:
            found.append(file.read_manifest(path))
        except UserError:
            continue
    return tuple(found)
