"""A copy of the package that has the stub backend, and a shard of stub cases to run in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from opatlas.harness import journal

sys.path.insert(0, str(Path(__file__).parents[2]))
import stub_tree
from stub_tree import case_id

CONTEXT = "c" * 64


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PYTHONPATH."""
    return stub_tree.copy_tree(tmp_path_factory.mktemp("tree"))


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
        self.folder.mkdir(parents=True, exist_ok=True)
        self.ticket.write_text(stub_tree.ticket(self.tree, cases, **changes))

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
