"""A copy of the package that has the stub backend, and tickets of stub cases, for tests and benchmarks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def copy_tree(target: Path) -> Path:
    """Copies the package to a folder for PYTHONPATH, with tests/stub as its backend `stub`."""
    ignore = shutil.ignore_patterns("__pycache__", "stub")
    shutil.copytree(ROOT / "workflow" / "opatlas", target / "opatlas", ignore=ignore)
    shutil.copytree(ROOT / "tests" / "stub", target / "opatlas" / "backends" / "stub", ignore=ignore)
    return target


def modules(tree: Path) -> list[str]:
    """All modules of the package in a tree, by name."""
    names = []
    for path in sorted((tree / "opatlas").rglob("*.py")):
        parts = path.relative_to(tree).with_suffix("").parts
        names.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return names


def case_id(m: int) -> str:
    return f"gemm/dtype=bfloat16/m={m}/n=256/k=256"


def ticket(tree: Path, cases: int | list[dict[str, Any]], **changes: Any) -> str:
    """A ticket's text: so many cases (m from 1) of one build, or these; `changes` replace its keys."""
    if isinstance(cases, int):
        cases = [{"id": case_id(m), "build": "b", "cost_s": 0.0} for m in range(1, cases + 1)]
    limits = {"deadline_floor_s": 30.0, "build_s": 30.0, "start_s": 60.0, "grace_s": 10.0}
    document = {
        "format": 1,
        "dataset": "stub/1.0.0/cpu",
        "backend": "stub",
        "version": "1.0.0",
        "op": "gemm",
        "shard": "s-01",
        "fingerprint": "f" * 64,
        "context": "c" * 64,
        "cases": [{"group": "model bfloat16", **case} for case in cases],
        "runtime": {"kind": "host"},
        "expect": {"version": "1.0.0", "sm": None, "device": None},
        "platform": {},
        "measure": {},
        "code": dict.fromkeys(modules(tree), "0"),
        "harness_modules": [],
        **changes,
        "run": {**limits, **changes.get("run", {})},
    }
    return json.dumps(document)
