"""Real snakemake runs in temporary copies of the project, with a stub backend that needs no framework."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
PARTS = ("workflow", "config", "cases", "profiles")
STUB = "stub/1.0.0/cpu"
TARGET = f"results/{STUB}"

GEMM_HELPER = "workflow/opatlas/backends/stub/gemm_helper.py"

STUB_PINS = """
stub:
  "1.0.0":
    runtime: host
    platforms: [cpu]
"""
STUB_OPS = """
stub:
  gemm:
    - {dtype: float32}
    - {dtype: bfloat16}
  attention_context:
    - {dtype: bfloat16, kv_dtype: bfloat16}
  attention_generation:
    - {dtype: bfloat16, kv_dtype: bfloat16}
  moe:
    - {dtype: bfloat16}
"""
STUB_MODEL = """
stub/Tiny:
  architecture: StubForCausalLM
  backends: [stub]
  attention:
    - {heads: 4, kv_heads: 2, head_dim: 64, tp: [1, 2]}
  gemm:
    - {n: [640, 1280], k: [320]}
  moe:
    - {hidden: 256, inter: 128, topk: 2, experts: 8}
"""


@dataclass(frozen=True)
class Run:
    """One finished snakemake call."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        return self.stdout + self.stderr

    @property
    def jobs(self) -> dict[str, int]:
        """Jobs by rule, from the table that snakemake prints first; empty when nothing is to be done.

        Targets named by a path are rules without a job of their own and don't count.
        """
        found = re.search(r"Job stats:\n(.*?)\n\n", self.output, re.DOTALL)
        lines = found[1].splitlines()[2:] if found else []
        counts = dict(line.rsplit(maxsplit=1) for line in lines)
        return {rule: int(count) for rule, count in counts.items() if rule != "total" and "/" not in rule}


class Project:
    """A copy of the project that a test may edit and run."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, name: str) -> Path:
        return self.root / name

    def edit(self, name: str, old: str, new: str) -> None:
        path = self.path(name)
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{name} does not contain {old!r}"
        path.write_text(text.replace(old, new), encoding="utf-8")

    def append(self, name: str, text: str) -> None:
        with self.path(name).open("a", encoding="utf-8") as file:
            file.write(text)

    def yaml(self, name: str) -> dict[str, object]:
        return yaml.safe_load(self.path(name).read_text(encoding="utf-8"))

    def run(self, *command: str, **environment: str) -> Run:
        done = subprocess.run(
            command,
            cwd=self.root,
            env=self.environment() | environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
        return Run(done.returncode, done.stdout, done.stderr)

    def environment(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "OPATLAS"))}
        return kept | {"PYTHONPATH": "workflow", "PYTHONDONTWRITEBYTECODE": "1"}

    def snakemake(self, *arguments: str, **environment: str) -> Run:
        return self.run(sys.executable, "-m", "snakemake", *arguments, **environment)

    def dry_run(self, *arguments: str, **environment: str) -> Run:
        run = self.snakemake("-n", *(arguments or (TARGET,)), **environment)
        assert run.returncode == 0, run.output
        return run

    def make(self, *arguments: str, **environment: str) -> Run:
        """A run that must succeed."""
        run = self.snakemake(*(arguments or (TARGET,)), **environment)
        assert run.returncode == 0, run.output
        return run

    def opatlas(self, *arguments: str, **environment: str) -> Run:
        return self.run(sys.executable, "-m", "opatlas", *arguments, **environment)

    def shards(self) -> list[Path]:
        return sorted(
            path for path in self.path("results/shards").rglob("*.parquet") if ".failures." not in path.name
        )

    def measured(self) -> int:
        """How many rows were ever measured here: row records in all journals."""
        journals = self.path("results/attempts").rglob("*.journal")
        return sum(path.read_text(encoding="utf-8").count('"record":"row"') for path in journals)


def copy_project(root: Path) -> Project:
    """The project as it is in the working tree, with the stub backend and a tiny model in it."""
    root.mkdir(parents=True, exist_ok=True)
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "stub")
    for part in PARTS:
        shutil.copytree(REPOSITORY / part, root / part, ignore=ignored)
    shutil.copytree(REPOSITORY / "tests/stub", root / "workflow/opatlas/backends/stub", ignore=ignored)
    project = Project(root)
    project.append("config/frameworks.yaml", STUB_PINS)
    project.append("cases/backends.yaml", STUB_OPS)
    project.path("cases/models/stub.yaml").write_text(STUB_MODEL, encoding="utf-8")
    project.append(
        "workflow/opatlas/backends/stub/gemm.py", "\nfrom opatlas.backends.stub import gemm_helper\n"
    )
    project.path(GEMM_HELPER).write_text('"""Only gemm imports this."""\n\nSCALE = 1.0\n', encoding="utf-8")
    project.edit("config/platforms.yaml", "models: [", "models: [stub/Tiny, stub/Second, ")
    # A few seconds a shard, so that this small plan has several shards per op.
    project.edit("config/config.yaml", "shard_minutes: 20", "shard_minutes: 0.2")
    project.edit("config/config.yaml", "audit_share: 0.01", "audit_share: 0")
    return project
