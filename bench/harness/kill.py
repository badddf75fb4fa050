"""Kills the supervisor or its worker at random moments, run after run, and looks whether anything got lost.

    python bench/harness/kill.py [--runs 200] [--seed 1]

One run is one shard of stub cases of about a millisecond. Its supervisor is started again and again until it
ends well; each time up to the last one either it or its worker is killed by SIGKILL somewhere between its
start and its end. Afterwards every case must have exactly one outcome, rows that were finished at a kill must
be the rows that count in the end, and no process or job folder may be left. Exits with 1 where not.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "workflow")]

import stub_tree  # noqa: E402
from opatlas.harness import journal, linux  # noqa: E402

CASES = 30
SECONDS = 0.001
KILLS = 3

Rows = dict[str, tuple[str, int]]


class Shard:
    """One attempts folder and the processes that work in it."""

    def __init__(self, tree: Path, folder: Path) -> None:
        self.tree = tree
        self.attempts = folder / "attempts"
        self.scratch = folder / "scratch"
        self.script = folder / "script.json"
        for path in (self.attempts, self.scratch):
            path.mkdir(parents=True)
        self.ticket = self.attempts / "todo.ticket.json"
        cases = [{"id": stub_tree.case_id(m), "build": str(m // 10), "cost_s": SECONDS} for m in range(CASES)]
        self.ticket.write_text(stub_tree.ticket(tree, cases))
        self.script.write_text(f'{{"seconds": {SECONDS}}}')

    def start(self) -> subprocess.Popen[str]:
        own = {"PYTHONPATH": self.tree, "TMPDIR": self.scratch, "OPATLAS_STUB": self.script}
        return subprocess.Popen(
            [sys.executable, "-m", "opatlas.harness.supervisor", str(self.ticket)],
            env={**os.environ, **{name: str(value) for name, value in own.items()}},
            stderr=subprocess.PIPE,
            text=True,
        )

    def rows(self) -> Rows:
        """The rows that count, and where each is from."""
        outcomes = journal.read(self.attempts).outcomes
        return {
            key.case: (outcome["attempt"], outcome["order"])
            for key, outcome in outcomes.items()
            if outcome["record"] == "row"
        }


def life_s(tree: Path, folder: Path) -> float:
    """How long a supervisor lives that nobody kills."""
    shard = Shard(tree, folder)
    started = time.monotonic()
    assert shard.start().wait() == 0
    return time.monotonic() - started


def torment(shard: Shard, draw: random.Random, life: float) -> tuple[Counter[str], list[str]]:
    """One run: what was killed, and what went wrong."""
    killed: Counter[str] = Counter()
    wrong: list[str] = []
    finished: Rows = {}
    for kills_left in range(KILLS, -1, -1):
        process = shard.start()
        if kills_left:
            victim = draw.choice(["supervisor", "worker"])
            killed[victim] += kill(process, victim, draw.uniform(0, life))
        _, errors = process.communicate(timeout=120)
        found = shard.rows()
        wrong += [f"{case} was a row and is none now" for case in finished if case not in found]
        wrong += [
            f"{case} is another row now" for case in found if finished.get(case) not in (None, found[case])
        ]
        finished = found
        if process.returncode == 0:
            break
        if process.returncode != -signal.SIGKILL:
            wrong.append(f"the supervisor ended with {process.returncode}: {errors}")
    return killed, wrong + faults(shard)


def kill(process: subprocess.Popen[str], victim: str, delay: float) -> int:
    """Kills it after a while if it is still there, a worker at half of that after it began to live."""
    workers: list[int] = []
    while victim == "worker" and process.poll() is None and not workers:
        workers = linux.descendants(process.pid)
    time.sleep(delay / 2 if workers else delay)
    if process.poll() is not None:
        return 0
    with suppress(ProcessLookupError):
        os.kill(workers[0] if workers else process.pid, signal.SIGKILL)
    return 1


def faults(shard: Shard) -> list[str]:
    """What is wrong with a shard that should be complete."""
    wrong = []
    journals = journal.read(shard.attempts)
    if len(journals.outcomes) != CASES or not (shard.attempts / "todo.done.json").exists():
        wrong.append(f"{len(journals.outcomes)} of {CASES} cases have an outcome")
    for key, outcome in journals.outcomes.items():
        # A worker that is killed in both of a case's runs is no worker of ours to save.
        if outcome["record"] == "failure" and not (
            outcome["exit"] == outcome["first"]["exit"] == "signal SIGKILL"
        ):
            wrong.append(f"{key.case} failed: {outcome['message']}")
    if journals.superseded:
        wrong.append(f"{len(journals.superseded)} outcomes are doubled")
    wrong += journals.problems
    if left := list(shard.scratch.iterdir()):
        wrong.append(f"{left[0]} is left")
    for process in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if str(shard.script).encode() in process.read_bytes():
                wrong.append(f"process {process.parent.name} is left")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    killed: Counter[str] = Counter()
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tree = stub_tree.copy_tree(folder / "tree")
        life = min(life_s(tree, folder / f"unharmed-{number}") for number in range(3))
        for run in range(arguments.runs):
            draw = random.Random(f"{arguments.seed}/{run}")
            deaths, faulty = torment(Shard(tree, folder / str(run)), draw, life)
            killed += deaths
            wrong += [f"run {run}: {fault}" for fault in faulty]
    print(f"{arguments.runs} runs of {CASES} cases, killed: {dict(killed)}, faults: {len(wrong)}")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
