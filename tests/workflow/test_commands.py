"""What people ask beside datasets: retry, gc, status, show, plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from opatlas.shards import file
from support.project import STUB, TARGET, Project

CASE = "gemm/dtype=float32/m=8/n=640/k=320"


def attempts(project: Project) -> dict[str, str]:
    """Attempt of each row of the published gemm table."""
    rows = pq.read_table(project.path(f"{TARGET}/gemm_perf.parquet")).select(["case_id", "attempt"])
    return {row["case_id"]: row["attempt"] for row in rows.to_pylist()}


def rows(project: Project) -> list[str]:
    """The case of every row and failure of the published dataset."""
    tables = sorted(project.path(TARGET).glob("*.parquet"))
    return [case for path in tables for case in pq.read_table(path)["case_id"].to_pylist()]


def planned_shards(project: Project) -> list[Path]:
    provenance = json.loads(project.path(f"{TARGET}/provenance.json").read_text(encoding="utf-8"))
    return [project.path(shard["path"]) for shard in provenance["shards"]]


def manifests(project: Project) -> list[dict[str, Any]]:
    return [file.read_manifest(path) for path in planned_shards(project)]


def test_a_retried_case_is_measured_again_alone_and_its_old_value_is_kept(published: Project) -> None:
    before, measured = attempts(published), published.measured()
    shards = published.shards()
    asked = published.opatlas("retry", STUB, "--case", CASE, "--dry-run")
    assert "1 cases would be measured again" in asked.stdout
    assert published.dry_run().jobs == {}
    assert published.opatlas("retry", STUB, "--case", CASE).returncode == 0
    run = published.make()
    assert (run.jobs["measure_shard"], run.jobs["assemble_shard"]) == (1, 1)
    assert published.measured() == measured + 1
    after = attempts(published)
    assert {case for case in after if after[case] != before[case]} == {CASE}
    assert set(shards) <= set(published.shards())
    assert published.dry_run().jobs == {}


def test_retry_of_what_does_not_exist_is_said(published: Project) -> None:
    run = published.opatlas("retry", STUB, "--class", "hang")
    assert run.returncode == 1
    assert "nothing that was measured matches" in run.stderr
    nothing = published.opatlas("retry", STUB)
    assert "--class, --node, --gpu or --case" in nothing.stderr


def test_retry_takes_what_a_node_measured_and_names_the_known_nodes(published: Project) -> None:
    node = manifests(published)[0]["attempts"][0]["node"]
    asked = published.opatlas("retry", STUB, "--node", node, "--dry-run")
    assert f"{len(rows(published))} cases would be measured again" in asked.stdout
    narrowed = published.opatlas("retry", STUB, "--node", node, "--case", CASE, "--dry-run")
    assert "1 cases would be measured again" in narrowed.stdout
    other = published.opatlas("retry", STUB, "--node", "elsewhere")
    assert other.returncode == 1
    assert f"nothing that was measured matches; nodes are {node}" in other.stderr
    assert published.opatlas("retry", STUB, "--gpu", "GPU-1").returncode == 1


def test_control_cases_are_kept_when_shards_are_regrouped(published: Project) -> None:
    def timed() -> set[tuple[str, int]]:
        controls = [control for manifest in manifests(published) for control in manifest["controls"]]
        return {(control["attempt"], control["order"]) for control in controls}

    before = timed()
    assert before
    for path in published.path("results/attempts").rglob("*.journal"):
        path.unlink()
    published.edit("config/config.yaml", "shard_minutes: 0.2", "shard_minutes: 20")
    published.make()
    assert timed() == before


def test_gc_removes_what_the_named_dataset_does_not_need_and_nothing_else(published: Project) -> None:
    published.edit("config/config.yaml", "shard_minutes: 0.2", "shard_minutes: 20")
    refused = published.opatlas("gc", STUB)
    assert refused.returncode == 1
    assert "is not complete" in refused.stderr
    published.make()
    shards = len(published.shards())
    listed = published.opatlas("gc", STUB)
    assert "would be removed" in listed.stdout
    assert len(published.shards()) == shards
    assert published.opatlas("gc", STUB, "--delete").returncode == 0
    assert len(published.shards()) == 4
    assert published.dry_run().jobs == {}
    assert published.path(f"{TARGET}/provenance.json").exists()
    assert published.opatlas("gc", STUB).stdout.startswith("0 files")


def test_status_and_show(published: Project) -> None:
    status = published.opatlas("status", "--all")
    assert "No run holds the lock." in status.stdout
    assert f"{STUB}/gemm/" in status.stdout
    shown = published.opatlas("show", STUB)
    assert f"Published {TARGET}" in shown.stdout
    assert "gemm_perf.parquet" in shown.stdout
    assert "no dataset is published" in published.opatlas("show", "torch/2.13.0/cpu").stderr


def test_a_mistyped_command_lists_the_known_ones(published: Project) -> None:
    run = published.opatlas("statsu")
    assert run.returncode == 2
    assert "retry" in run.stderr


def test_provenance_names_logs_that_exist_with_their_hash(published: Project) -> None:
    import hashlib

    provenance = json.loads(published.path(f"{TARGET}/provenance.json").read_text(encoding="utf-8"))
    assert provenance["attempts"]
    for attempt in provenance["attempts"].values():
        content = published.path(attempt["log"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == attempt["log_sha256"]
