"""What the harness costs per case beyond the measuring: stub cases that take no time.

    python bench/harness/overhead.py [--cases 2000]

Prints milliseconds per case, the start of supervisor and worker taken off, and fails from 5 ms on.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "workflow")]

import stub_tree  # noqa: E402
from opatlas.harness import journal  # noqa: E402

LIMIT_MS = 5.0


def seconds(tree: Path, folder: Path, cases: int) -> float:
    """Wall time of a supervisor over so many cases, its start and its worker's included."""
    folder.mkdir()
    (folder / "todo.ticket.json").write_text(stub_tree.ticket(tree, cases))
    command = [sys.executable, "-m", "opatlas.harness.supervisor", str(folder / "todo.ticket.json")]
    started = time.perf_counter()
    subprocess.run(command, env={**os.environ, "PYTHONPATH": str(tree)}, check=True)
    took = time.perf_counter() - started
    assert len(journal.read(folder).outcomes) == cases
    return took


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=2000)
    cases = parser.parse_args().cases
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tree = stub_tree.copy_tree(folder / "tree")
        seconds(tree, folder / "warm-up", 1)
        idle = seconds(tree, folder / "idle", 1)
        took = seconds(tree, folder / "full", cases)
    per_case = (took - idle) / (cases - 1) * 1000
    print(f"{cases} cases in {took:.2f} s, one case in {idle:.2f} s: {per_case:.2f} ms per case")
    return 0 if per_case < LIMIT_MS else 1


if __name__ == "__main__":
    sys.exit(main())
