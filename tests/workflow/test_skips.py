"""`snakemake results/<dataset>.skips.json`: which entries of the skip list still hold on this hardware."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from support.project import STUB, TARGET, Project

SKIPS = """
- backend: stub
  op: gemm
  where: {n: 640, m: {min: 64}}
  why: fails_whole
  reason: nothing of this width runs

- backend: stub
  op: gemm
  where: {n: 1280, dtype: float32}
  why: fails_whole
  reason: no kernel of this width

- backend: stub
  op: moe
  where: {tokens: 8}
  why: kills
  reason: the worker dies

- backend: stub
  op: moe
  where: {tokens: 64}
  why: mismeasured
  reason: not what serving runs
"""
SCRIPT = {"cases": {"gemm/dtype=float32/m=*/n=1280/*": "unsupported", "moe/*/tokens=8*": "segfault"}}
ASK = f"{TARGET}.skips.json"


def answer(project: Project) -> dict[str, dict[str, Any]]:
    document = json.loads(project.path(ASK).read_text(encoding="utf-8"))
    return {entry["reason"]: entry for entry in document["entries"]}


def table(project: Project, name: str) -> list[dict[str, Any]]:
    return pq.read_table(project.path(f"{TARGET}/{name}.parquet")).to_pylist()


def test_entries_are_tried_on_the_hardware_and_nothing_else_is_measured(
    fresh: Project, tmp_path: Path
) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps(SCRIPT), encoding="utf-8")
    line = fresh.path("cases/skips.yaml").read_text(encoding="utf-8").count("\n") + 2
    fresh.append("cases/skips.yaml", SKIPS)
    planned = fresh.dry_run(ASK)
    assert planned.jobs == {"queue_shards": 1, "measure_shard": 2, "assemble_shard": 2}
    assert "16 cases" in planned.stdout

    run = fresh.make(ASK, OPATLAS_STUB=str(script))
    entries = answer(fresh)
    false = entries["nothing of this width runs"]
    assert false["entry"] == f"cases/skips.yaml:{line}"
    assert (false["op"], false["verdict"]) == ("gemm", "no longer true")
    assert (false["tried"], false["rows"], false["failures"]) == (4, 4, {})
    true = entries["no kernel of this width"]
    assert (true["tried"], true["rows"], true["failures"]) == (4, 0, {"unsupported": 4})
    assert true["verdict"] == "still true"
    deadly = entries["the worker dies"]
    assert (deadly["verdict"], deadly["failures"]) == ("still true", {"worker_died": 4})
    assert entries["not what serving runs"]["verdict"] == "cannot say"
    assert "cases/skips.yaml" in run.output
    assert {path.name.partition("-")[0] for path in fresh.shards()} == {"k"}

    # At every ask there is an answer, also where an entry has moved, and nothing is measured twice.
    measured, said = fresh.measured(), fresh.path(ASK).read_bytes()
    fresh.path(ASK).unlink()
    assert fresh.make(ASK).jobs == {}
    assert fresh.path(ASK).read_bytes() == said
    fresh.edit("cases/skips.yaml", SKIPS, f"\n# A comment.\n{SKIPS}")
    assert fresh.make(ASK).jobs == {}
    assert answer(fresh)["nothing of this width runs"]["entry"] == f"cases/skips.yaml:{line + 2}"
    assert fresh.measured() == measured

    # What was tried is no row of the dataset, now or when the entry is gone.
    fresh.make()
    assert not [row for row in table(fresh, "gemm_perf") if row["n"] == 640 and row["m"] >= 64]
    assert not table(fresh, "failures")
    assert "/k-" in fresh.opatlas("gc", STUB).stdout
    assert "/k-" not in fresh.opatlas("gc", STUB, f"{STUB}.skips").stdout
    fresh.edit("cases/skips.yaml", SKIPS, "")
    measured = fresh.measured()
    fresh.make()
    assert fresh.measured() - measured > 8
    assert len([row for row in table(fresh, "gemm_perf") if row["n"] == 640 and row["m"] >= 64]) == 4


def test_entries_of_ops_without_a_runner_are_named(fresh: Project) -> None:
    target = "results/trtllm/1.3.0rc20/sm90.skips.json"
    run = fresh.make(target)
    assert run.jobs == {}
    entries = json.loads(fresh.path(target).read_text(encoding="utf-8"))["entries"]
    assert {entry["verdict"] for entry in entries} == {"cannot say"}
    assert any(entry["because"] == "trtllm has no runner of gemm" for entry in entries)
