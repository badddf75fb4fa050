"""The dry run is the plan: complete, readable, and it touches nothing."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from pathlib import Path

import pyarrow.parquet as pq
from support.project import STUB, TARGET, Project


def snapshot(root: Path) -> dict[str, tuple[int, str]]:
    """Time and hash of every file that is not snakemake's own."""
    return {
        str(path.relative_to(root)): (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".snakemake" not in path.parts and "__pycache__" not in path.parts
    }


def test_a_dry_run_writes_nothing(published: Project) -> None:
    published.append(
        "cases/models/stub.yaml",
        "\nstub/Second:\n  architecture: A\n  backends: [stub]\n  gemm: [{n: [96], k: [320]}]\n",
    )
    before = snapshot(published.root)
    first, second = published.dry_run(), published.dry_run()
    assert first.jobs == second.jobs != {}
    assert snapshot(published.root) == before


def test_a_dry_run_says_what_is_planned_and_why(fresh: Project) -> None:
    run = fresh.dry_run()
    assert "Plan of results/stub/1.0.0/cpu" in run.stdout
    assert "never measured" in run.stdout
    assert "limits.models" in run.stdout
    assert "of device time" in run.stdout
    assert "sha256:" in run.stdout
    assert run.jobs["measure_shard"] > 4


def test_a_dry_run_names_why_shards_are_stale(published: Project) -> None:
    published.append("workflow/opatlas/backends/stub/gemm.py", "\nFACTOR = 2\n")
    assert "changed: backends.stub.gemm" in published.dry_run().stdout
    published.edit("config/config.yaml", "measure: {}", "measure: {target_ci: 0.02}")
    assert "measure.target_ci" in published.dry_run().stdout


def test_a_dry_run_needs_no_framework_no_image_and_no_apptainer(fresh: Project, tmp_path: Path) -> None:
    """Datasets of image pins, with every framework's import blocked and no Apptainer on the PATH."""
    blocker = tmp_path / "blocked"
    blocker.mkdir()
    for name in ("torch", "vllm", "tensorrt_llm", "sglang"):
        (blocker / f"{name}.py").write_text(f"raise RuntimeError('{name} was imported')\n", encoding="utf-8")
    # Snakemake itself wants a shell; nothing else is on the PATH.
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "sh", "which"):
        (tools / name).symlink_to(str(shutil.which(name)))
    for target in ("results/vllm/0.24.0/sm90", "results/trtllm/1.3.0rc20/sm90", "results/torch/2.11.0/sm90"):
        run = fresh.snakemake("-n", target, PYTHONPATH=f"{blocker}:workflow", PATH=str(tools))
        assert run.returncode == 0, run.output
        assert f"Plan of {target}" in run.stdout


def test_an_op_without_a_runner_is_planned_and_said_to_be(fresh: Project) -> None:
    run = fresh.dry_run("results/trtllm/1.3.0rc20/sm90")
    assert "planned, no runner: " in run.stdout
    assert "measure_shard" not in run.jobs


def test_plan_tables(fresh: Project) -> None:
    target = f"results/plans/{STUB}"
    fresh.make(target)
    document = json.loads(fresh.path(f"{target}/plan.json").read_text(encoding="utf-8"))
    tables = {op: pq.read_table(fresh.path(f"{target}/{op}.parquet")) for op in document["ops"]}
    ids = sorted(case_id for table in tables.values() for case_id in table["case_id"].to_pylist())
    digest = hashlib.sha256("\n".join(ids).encode()).hexdigest()
    assert document["case_plan_hash"] == f"sha256:{digest}"
    assert document["cases"] == len(ids) == len(set(ids))
    gemm = tables["gemm"].to_pylist()[0]
    assert {"case_id", "dtype", "m", "n", "k", "build", "owners", "shard"} <= gemm.keys()
    assert fresh.dry_run(target).jobs == {}
    fresh.edit("cases/models/stub.yaml", "n: [640, 1280]", "n: [640]")
    assert fresh.make(target).jobs == {"write_plan": 1}
    widths = pq.read_table(fresh.path(f"{target}/gemm.parquet"))["n"].to_pylist()
    assert 640 in widths
    assert 1280 not in widths


def test_the_plan_is_the_same_under_every_hash_seed(fresh: Project) -> None:
    code = (
        "from pathlib import Path; from opatlas.planning.dataset import load; "
        f"p = load(Path(), '{STUB}'); print(p.fingerprint, [s.fingerprint for s in p.shards])"
    )
    outputs = {fresh.run(sys.executable, "-c", code, PYTHONHASHSEED=seed).stdout for seed in ("0", "1", "2")}
    assert len(outputs) == 1
    assert outputs != {""}


def test_limit_draws_by_the_printed_seed(fresh: Project) -> None:
    arguments = (f"{TARGET}@draw", "--config", "subset=draw", "limit=7")
    run = fresh.dry_run(*arguments)
    assert "drawn with seed 1" in run.stdout
    assert "7 cases" in run.stdout
    smoke = fresh.dry_run(f"{TARGET}@smoke", "--config", "subset=smoke", "smoke=true")
    assert "16 cases" in smoke.stdout
    each = fresh.dry_run(f"{TARGET}@each", "--config", "subset=each", "limit_per_op=3")
    assert "drawn with seed 1" in each.stdout
    assert "12 cases" in each.stdout
