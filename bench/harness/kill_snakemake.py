"""Kills snakemake, a supervisor or a worker at random moments of a real run, and runs snakemake again.

    python bench/harness/kill_snakemake.py [--runs 20] [--seed 1] [--dataset]

One run is a fresh copy of the project with the stub backend, asked for the shards of one op, or with
--dataset for the whole published dataset. Afterwards every planned case must be in a shard's file exactly
once, as a row, rows that were finished at a kill must be the ones there, and snakemake must say that nothing
is to be done. Exits with 1 where not.
"""

from __future__ import annotations

import argparse
import json
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

from opatlas.errors import UserError  # noqa: E402
from opatlas.harness import journal, linux  # noqa: E402
from opatlas.shards import file  # noqa: E402
from support.project import TARGET, Project, copy_project  # noqa: E402

OP = "gemm"
SECONDS = 0.02
KILLS = 3
PROGRAMS = {"supervisor": b"opatlas.harness.supervisor", "worker": b"opatlas.harness.worker"}

Rows = dict[str, str]


def new_project(folder: Path) -> tuple[Project, dict[str, int]]:
    """A project with its plan made, and the number of cases of each shard file of the op."""
    project = copy_project(folder)
    (folder / "stub.json").write_text(json.dumps({"seconds": SECONDS}))
    project.make(TARGET.replace("results/", "results/plans/"))
    plan = json.loads((folder / TARGET.replace("results/", "results/plans/") / "plan.json").read_text())
    path = TARGET.replace("results/", "results/shards/")
    shards = plan["ops"][OP]["shards"]
    return project, {f"{path}/{OP}/{shard['shard']}.parquet": shard["cases"] for shard in shards}


def start(project: Project, targets: list[str]) -> subprocess.Popen[bytes]:
    with (project.root / "snakemake.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "snakemake", *targets],
            cwd=project.root,
            env=project.environment() | {"OPATLAS_STUB": str(project.root / "stub.json")},
            stdout=log,
            stderr=log,
        )


def kill(process: subprocess.Popen[bytes], victim: str, delay: float) -> bool:
    """After a while kills snakemake, or the next process of that name below it; False if all ended before."""
    time.sleep(delay)
    while process.poll() is None:
        pids = [process.pid]
        if victim in PROGRAMS:
            pids = [pid for pid in linux.descendants(process.pid) if _runs(pid, PROGRAMS[victim])]
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            return True
    return False


def _runs(pid: int, module: bytes) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return module in words


def finished(project: Project) -> Rows:
    """The attempt of each row that counts by the journals."""
    rows = {}
    for folder in (project.root / "results/attempts").glob(f"**/{OP}/*/"):
        for key, outcome in journal.read(folder).outcomes.items():
            if outcome["record"] == "row":
                rows[key.case] = outcome["attempt"]
    return rows


def torment(
    project: Project, shards: dict[str, int], targets: list[str], draw: random.Random, life: float
) -> tuple[Counter[str], list[str]]:
    """One run: what was killed, and what went wrong."""
    killed: Counter[str] = Counter()
    wrong: list[str] = []
    before: Rows = {}
    for kills_left in range(KILLS, -1, -1):
        process = start(project, targets)
        if kills_left:
            victim = draw.choice(["snakemake", *PROGRAMS])
            killed[victim] += kill(process, victim, draw.uniform(0, life))
        code = process.wait(timeout=600)
        now = finished(project)
        wrong += [f"{case} is lost or another row now" for case in before if now.get(case) != before[case]]
        before = now
        if code == 0:
            break
    else:
        wrong.append(f"snakemake ends with {code}:\n{(project.root / 'snakemake.log').read_text()[-3000:]}")
        return killed, wrong
    return killed, wrong + faults(project, shards, targets, before)


def faults(project: Project, shards: dict[str, int], targets: list[str], rows: Rows) -> list[str]:
    """What is wrong with a project that should be complete."""
    wrong = []
    for path, cases in shards.items():
        try:
            shard = file.read(project.root / path)
        except UserError as error:
            wrong.append(str(error))
            continue
        ids = Counter(row["case_id"] for row in shard.rows.to_pylist())
        if len(ids) != cases or set(ids.values()) != {1} or shard.failures.num_rows:
            wrong.append(f"{path} has {ids.total()} rows of {len(ids)} cases, not of {cases}")
        for row in shard.rows.to_pylist():
            if rows[row["case_id"]] != row["attempt"]:
                wrong.append(f"{row['case_id']} in {path} is not the row that was finished first")
    log = (project.root / "snakemake.log").read_text()
    again = project.snakemake(*targets)
    if again.returncode or again.jobs:
        wrong.append(f"snakemake finds more to do: {again.jobs}")
    return [*wrong, log] if wrong else []


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dataset", action="store_true")
    arguments = parser.parse_args()
    killed: Counter[str] = Counter()
    wrong = []
    life = 0.0
    for run in range(-1, arguments.runs):
        with tempfile.TemporaryDirectory() as name:
            project, shards = new_project(Path(name) / "project")
            targets = [TARGET] if arguments.dataset else list(shards)
            if run < 0:
                started = time.monotonic()
                assert start(project, targets).wait() == 0, (project.root / "snakemake.log").read_text()
                life = time.monotonic() - started
                continue
            draw = random.Random(f"{arguments.seed}/{run}")
            deaths, faulty = torment(project, shards, targets, draw, life)
            killed += deaths
            wrong += [f"run {run}: {fault}" for fault in faulty]
    print(f"{arguments.runs} runs of {life:.0f} s, killed: {dict(killed)}, faults: {len(wrong)}")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
