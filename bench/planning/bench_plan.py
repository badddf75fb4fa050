"""Wall time and memory of planning each dataset, a fresh process for each.

    python bench/planning/bench_plan.py [NAME ...]

Times the whole of it: the interpreter, reading config/ and cases/, the plan, its ids and its hash.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEFAULT = [
    f"{backend}/{platform}"
    for backend in ("trtllm/1.3.0rc20", "vllm/0.24.0", "sglang/0.5.14")
    for platform in ("sm80", "sm90", "sm100", "sm120")
]
ONE = """
import resource, sys, time
from pathlib import Path
from opatlas.catalogue import load
from opatlas.config import datasets
from opatlas.planning.plan import make_plan
config, cases = datasets.load(Path(".")), load.load(Path("."))
began = time.perf_counter()
plan = make_plan(config, cases, config.dataset(sys.argv[1]), {})
planned = time.perf_counter() - began
plan.case_plan_hash
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(f"{plan.cases} {planned:.2f} {memory:.2f}")
"""


def main(names: list[str]) -> None:
    print("| dataset | cases | plan, s | whole process, s | memory, GiB |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name in names:
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", ONE, name],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT / "workflow")},
            check=True,
            capture_output=True,
            text=True,
        )
        whole = time.perf_counter() - began
        cases, planned, memory = done.stdout.split()
        print(f"| {name} | {cases} | {planned} | {whole:.2f} | {memory} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or DEFAULT)
