"""How long `snakemake -n` takes for a whole dataset of some 350,000 cases in about 100 shards.

    python bench/planning/bench_dry_run.py [--runs 3]

The dataset is vLLM's plan for SM90 with a runner for every op (the stub backend of the tests under that
name), in a temporary copy of the project. Prints wall seconds and peak memory of each run, and what was
planned.
"""

from __future__ import annotations

import argparse
import re
import resource
import sys
import tempfile
import time
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from support.project import Project, copy_project  # noqa: E402

TARGET = "results/stub/9.0.0/sm90"
PIN = """
  "9.0.0":
    runtime: host
    platforms: [sm90]
"""


def make(folder: Path) -> Project:
    """A copy whose stub backend declares what vLLM declares, each op with a runner."""
    project = copy_project(folder)
    project.append("config/frameworks.yaml", PIN)
    declared = yaml.safe_load(project.path("cases/backends.yaml").read_text(encoding="utf-8"))
    declared["stub"] = declared["vllm"]
    project.path("cases/backends.yaml").write_text(yaml.safe_dump(declared), encoding="utf-8")
    project.edit("config/config.yaml", "shard_minutes: 0.2", "shard_minutes: 20")
    project.path("cases/models/stub.yaml").unlink()
    for name in ("skips", "dispatch"):
        rules = project.path(f"cases/{name}.yaml")
        text = rules.read_text(encoding="utf-8").replace("backend: vllm\n", "backend: [vllm, stub]\n")
        rules.write_text(text, encoding="utf-8")
    backend = project.path("workflow/opatlas/backends/stub")
    for op in declared["stub"]:
        if not (backend / f"{op}.py").exists():
            (backend / f"{op}.py").write_bytes((backend / "moe.py").read_bytes())
    return project


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        project = make(Path(folder) / "project")
        for _ in range(arguments.runs):
            start = time.monotonic()
            run = project.dry_run(TARGET)
            seconds = time.monotonic() - start
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
            print(f"{seconds:.2f} s, {peak:.2f} GiB at most so far")
        print(re.search(r"\d+ cases .*", run.stdout)[0])


if __name__ == "__main__":
    main()
