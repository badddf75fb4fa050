"""A copy of the package that has the stub backend, and a shard of stub cases to run in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from opatlas.harness import journal

ROOT = Path(__file__).parents[3]
CONTEXT = "c" * 64


def case_id(m: int) -> str:
    return f"gemm/dtype=bfloat16/m={m}/n=256/k=256"


def modules(tree: Path) -> list[str]:
    """All modules of the package in a tree, by name."""
    names = []
    for path in sorted((tree / "opatlas").rglob("*.py")):
        parts = path.relative_to(tree).with_suffix("").parts
        names.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return names


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PYTHONPATH."""
    target = tmp_path_factory.mktemp("tree")
    ignore = shutil.ignore_patterns("__pycache__", "stub")
    shutil.copytree(ROOT / "workflow" / "opatlas", target / "opatlas", ignore=ignore)
    shutil.copytree(ROOT / "tests" / "stub", target / "opatlas" / "backends" / "stub", ignore=ignore)
    return target


@dataclass
class Shard:
    """An attempts folder with one ticket, and the ways tests treat it."""

    tree: Path
    folder: Path
    script: Path
    scratch: Path
    environment: dict[str, str] = field(default_factory=dict)

    case_id = staticmethod(case_id)

    @property
    def ticket(self) -> Path:
        return self.folder / "todo.ticket.json"

    @property
    def receipt(self) -> Path:
        return self.folder / "todo.done.json"

    def plan(self, cases: int | list[dict[str, Any]], **changes: Any) -> None:
        """Writes the ticket: so many cases of one build, or these."""
        if isinstance(cases, int):
            cases = [{"id": case_id(m), "build": "b", "cost_s": 0.0} for m in range(1, cases + 1)]
        limits = {"deadline_floor_s": 30.0, "build_s": 30.0, "start_s": 60.0, "grace_s": 10.0}
        ticket = {
            "format": 1,
            "dataset": "stub/1.0.0/cpu",
            "backend": "stub",
            "version": "1.0.0",
            "op": "gemm",
            "shard": "s-01",
            "fingerprint": "f" * 64,
            "context": CONTEXT,
            "cases": [{"group": "model bfloat16", **case} for case in cases],
            "runtime": {"kind": "host"},
            "expect": {"version": "1.0.0", "sm": None, "device": None},
            "platform": {},
            "measure": {},
            "code": dict.fromkeys(modules(self.tree), "0"),
            "harness_modules": [],
            **changes,
            "run": {**limits, **changes.get("run", {})},
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        self.ticket.write_text(json.dumps(ticket))

    def behave(self, cases: Mapping[str | int, Any], **more: Any) -> None:
        """Says how cases (by m, or by pattern) behave."""
        named = {case_id(key) if isinstance(key, int) else key: value for key, value in cases.items()}
        self.script.write_text(json.dumps({"cases": named, **more}))

    def start(self, prelude: str = "") -> subprocess.Popen[str]:
        """The supervisor as a process, after some lines of Python."""
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.tree),
            "OPATLAS_STUB": str(self.script),
            "TMPDIR": str(self.scratch),
            **self.environment,
        }
        module = "opatlas.harness.supervisor"
        code = f"{prelude}\nimport runpy\nrunpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
        how = ["-c", code] if prelude else ["-m", module]
        return subprocess.Popen(
            [sys.executable, *how, str(self.ticket)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, expect: int = 0, timeout: float = 60) -> str:
        """Runs the supervisor to its end; what it wrote to standard error."""
        process = self.start()
        try:
            out, errors = process.communicate(timeout=timeout)
        finally:
            process.kill()
        assert process.returncode == expect, (process.returncode, out, errors, self.log())
        return errors

    def done(self) -> Any:
        """The receipt."""
        return json.loads(self.receipt.read_text())

    def runs(self, m: int) -> int:
        """How often a case was run, by the stub's own count."""
        lines = Path(f"{self.script}.runs").read_text().splitlines()
        return sum(line.split()[0] == case_id(m) for line in lines)

    def records(self) -> list[journal.Record]:
        """All records of all attempts, in the order of the files and of writing."""
        return [record for path in self.journals() for record in journal.records(path)]

    def journals(self) -> list[Path]:
        return sorted(self.folder.glob("*.journal"))

    def read(self) -> journal.Journals:
        return journal.read(self.folder, CONTEXT)

    def outcomes(self) -> dict[int, journal.Record]:
        """The outcome of each case, by m."""
        return {
            int(key.case.split("m=")[1].split("/")[0]): record for key, record in self.read().outcomes.items()
        }

    def classes(self) -> dict[int, str]:
        """'row' or the failure's class, by m."""
        return {m: record.get("class", "row") for m, record in sorted(self.outcomes().items())}

    def log(self) -> str:
        return "".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("*.log")))


@pytest.fixture(scope="session")
def new_shard(tree: Path) -> Callable[[Path], Shard]:
    def make(folder: Path) -> Shard:
        scratch = folder / "scratch"
        scratch.mkdir()
        shard = Shard(tree, folder / "attempts" / "s-01-ffff", folder / "script.json", scratch)
        shard.behave({})
        return shard

    return make


@pytest.fixture
def shard(new_shard: Callable[[Path], Shard], tmp_path: Path) -> Iterator[Shard]:
    shard = new_shard(tmp_path)
    yield shard
    assert list(shard.scratch.glob("opatlas-*")) == [], "a job folder was left behind"
