"""What is measured again after an edit, and what is not: real runs, jobs counted.

Each edit is tried on a published dataset as it lies there, and again after everything that could
mislead a tool that goes by times or by metadata of its own.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.project import GEMM_HELPER, STUB, TARGET, Project, Run

MEASURE, ASSEMBLE = "measure_shard", "assemble_shard"
TABLES = {"merge_tables": 1, "publish_dataset": 1}
ATTENTION = ("attention_context", "attention_generation")


def leave(project: Project) -> None:
    """Nothing is disturbed."""


def forget(project: Project) -> None:
    shutil.rmtree(project.path(".snakemake"))


def shuffle_times(project: Project) -> None:
    draw = random.Random(7)
    for path in sorted(project.root.rglob("*")):
        if not path.is_symlink():
            moment = draw.uniform(1_000_000_000, 2_500_000_000)
            os.utime(path, (moment, moment))


def touch(project: Project) -> None:
    project.snakemake("--touch", "--forceall", TARGET)


DISTURBANCES = (leave, forget, shuffle_times, touch)


def shards_of(project: Project, op: str) -> int:
    return len([path for path in project.shards() if path.parent.name == op])


def edit_runner(project: Project) -> None:
    project.append("workflow/opatlas/backends/stub/gemm.py", "\nFACTOR = 2\n")


def edit_helper(project: Project) -> None:
    project.edit(GEMM_HELPER, "1.0", "2.0")


def edit_measure_setting(project: Project) -> None:
    project.edit("config/config.yaml", "measure: {}", "measure: {target_ci: 0.02}")


def edit_table(project: Project) -> None:
    project.edit(
        "workflow/opatlas/ops/gemm/op.py", 'field_column("m", "int64")', 'field_column("m", "int64", "m")'
    )


def edit_work_model(project: Project) -> None:
    project.edit("workflow/opatlas/ops/gemm/op.py", "flops=2.0 *", "flops=2.000001 *")


def edit_check(project: Project) -> None:
    project.append("workflow/opatlas/checks/run.py", "\nEDITED = True\n")


def edit_report(project: Project) -> None:
    project.append("workflow/opatlas/publishing/report.py", "\nEDITED = True\n")


def edit_comments(project: Project) -> None:
    """Comments, docstrings and formatting, in a runner, the worker, a rule and a check."""
    for name in ("backends/stub/gemm.py", "harness/worker.py", "measuring/settings.py", "checks/run.py"):
        path = project.path(f"workflow/opatlas/{name}")
        text = path.read_text(encoding="utf-8").replace('"""', '"""Edited: ', 1)
        path.write_text(f"# A comment.\n\n\n{text}\n# Another.\n", encoding="utf-8")
    project.edit(GEMM_HELPER, "SCALE = 1.0", "SCALE = (\n    1.0\n)")
    project.append("workflow/rules/measure.smk", "\n\n# A comment in a rule.\n")


def nothing(project: Project) -> None:
    """No edit."""


@dataclass(frozen=True)
class Expected:
    """Which ops are measured again (all their shards), and which of the later stages run."""

    ops: tuple[str, ...]
    tables: bool


EDITS: dict[Callable[[Project], None], Expected] = {
    nothing: Expected((), False),
    edit_comments: Expected((), False),
    edit_runner: Expected(("gemm",), True),
    edit_helper: Expected(("gemm",), True),
    edit_measure_setting: Expected(("gemm", "moe", *ATTENTION), True),
    edit_table: Expected((), True),
    edit_work_model: Expected((), True),
    edit_check: Expected((), True),
    edit_report: Expected((), True),
}


@pytest.mark.parametrize("disturb", DISTURBANCES, ids=lambda function: function.__name__)
@pytest.mark.parametrize("edit", EDITS, ids=lambda function: function.__name__)
def test_what_an_edit_makes_stale(
    published: Project, edit: Callable[[Project], None], disturb: Callable[[Project], None]
) -> None:
    expected = EDITS[edit]
    counts = {op: shards_of(published, op) for op in expected.ops}
    disturb(published)
    edit(published)
    jobs = published.dry_run().jobs
    measured = {name for name in jobs if name == MEASURE}
    assert jobs.get(MEASURE, 0) == sum(counts.values()), jobs
    assert bool(measured) == bool(expected.ops)
    if expected.ops:
        assert jobs[ASSEMBLE] == sum(counts.values())
    later = {name: jobs[name] for name in TABLES if name in jobs}
    assert later == (TABLES if expected.tables else {})


def table(project: Project, name: str = "gemm_perf") -> list[dict[str, object]]:
    return pq.read_table(project.path(f"{TARGET}/{name}.parquet")).to_pylist()


def files(project: Project, under: str) -> dict[str, bytes]:
    folder = project.path(under).resolve()
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


SECOND = """
stub/Second:
  architecture: StubForCausalLM
  backends: [stub]
  gemm:
    - {n: [960], k: [320]}
"""


@pytest.mark.parametrize("disturb", DISTURBANCES, ids=lambda function: function.__name__)
def test_a_new_model_measures_its_own_cases_alone(
    published: Project, disturb: Callable[[Project], None]
) -> None:
    before, rows = published.measured(), len(table(published))
    shards = set(published.shards())
    disturb(published)
    published.append("cases/models/stub.yaml", SECOND)
    run = published.make()
    new = set(published.shards()) - shards
    assert {path.parent.name for path in new} == {"gemm"}
    # One build per dtype: at most two shards, or their halves where a shard has grown too long.
    assert 1 <= len(new) <= 4
    assert run.jobs[ASSEMBLE] == len(new)
    assert run.jobs[MEASURE] <= len(new)
    assert published.measured() - before == 2 * 4
    assert len(table(published)) - rows == 2 * 4
    assert published.dry_run().jobs == {}


@pytest.mark.parametrize("disturb", DISTURBANCES, ids=lambda function: function.__name__)
def test_a_removed_case_leaves_the_table_and_nothing_is_measured(
    published: Project, disturb: Callable[[Project], None]
) -> None:
    rows = table(published)
    disturb(published)
    published.edit("cases/models/stub.yaml", "n: [640, 1280]", "n: [640]")
    run = published.make()
    assert MEASURE not in run.jobs
    assert table(published) == [
        row | {"shard": new["shard"]}
        for row, new in zip([row for row in rows if row["n"] != 1280], table(published), strict=True)
    ]
    assert published.dry_run().jobs == {}


@pytest.mark.parametrize("disturb", DISTURBANCES, ids=lambda function: function.__name__)
def test_a_revert_publishes_the_older_dataset_without_measuring(
    published: Project, disturb: Callable[[Project], None]
) -> None:
    old, measured = files(published, TARGET), published.measured()
    edit_helper(published)
    published.make()
    assert published.measured() > measured
    assert files(published, TARGET) != old
    measured = published.measured()
    disturb(published)
    published.edit(GEMM_HELPER, "2.0", "1.0")
    run = published.make()
    assert MEASURE not in run.jobs
    assert published.measured() == measured
    assert files(published, TARGET) == old
    assert published.dry_run().jobs == {}


@pytest.mark.parametrize("disturb", DISTURBANCES, ids=lambda function: function.__name__)
def test_a_deleted_shard_comes_back_from_its_journal(
    published: Project, disturb: Callable[[Project], None]
) -> None:
    disturb(published)
    victim = published.shards()[0]
    content, measured = victim.read_bytes(), published.measured()
    victim.unlink()
    run = published.make()
    assert run.jobs == {ASSEMBLE: 1}
    assert published.measured() == measured
    assert victim.read_bytes() == content


def test_a_deleted_shard_without_its_journal_is_measured_alone(published: Project) -> None:
    victim = published.shards()[0]
    name = victim.relative_to(published.path("results/shards")).with_suffix("")
    shutil.rmtree(published.path("results/attempts") / name)
    victim.unlink()
    jobs = published.make().jobs
    assert jobs == {"queue_shards": 1, MEASURE: 1, ASSEMBLE: 1}
    assert victim.exists()
    assert published.dry_run().jobs == {}


def test_regrouping_uses_no_device(published: Project) -> None:
    measured = published.measured()
    published.edit("config/config.yaml", "shard_minutes: 0.2", "shard_minutes: 20")
    run = published.make()
    assert MEASURE not in run.jobs
    assert run.jobs[ASSEMBLE] >= 3
    assert published.measured() == measured
    assert published.dry_run().jobs == {}


def test_a_subset_shares_rows_and_leaves_the_whole_dataset_alone(published: Project) -> None:
    before, measured = files(published, TARGET), published.measured()
    run = published.make(f"{TARGET}@small", "--config", "subset=small", "ops=gemm", "cases=m=8")
    assert MEASURE not in run.jobs
    assert published.measured() == measured
    assert files(published, TARGET) == before
    small = pq.read_table(published.path(f"{TARGET}@small/gemm_perf.parquet")).to_pylist()
    assert {row["m"] for row in small} == {8}
    assert not published.path(f"{TARGET}@small/moe_perf.parquet").exists()


def test_a_reordered_case_file_changes_nothing(published: Project) -> None:
    published.edit("cases/models/stub.yaml", "n: [640, 1280]", "n: [1280, 640]")
    assert published.dry_run().jobs == {}


def test_a_digest_makes_exactly_the_shards_under_its_pin_stale(fresh: Project) -> None:
    """Tickets of an image are measured by hand, as if inside it; then one op's digest changes."""
    one, two = "sha256:" + "1" * 64, "sha256:" + "2" * 64
    pins = f"""
  "2.0.0":
    - {{image: "example/stub@{one}", ops: [gemm], platforms: [cpu]}}
    - {{image: "example/stub@{two}", platforms: [cpu]}}
"""
    fresh.append("config/frameworks.yaml", pins)
    target = "results/stub/2.0.0/cpu"
    jobs = fresh.dry_run(target).jobs
    first = fresh.dry_run(target)
    stale_gemm = _stale(first, "gemm")
    assert jobs[MEASURE] > stale_gemm > 0
    refused = fresh.snakemake(target)
    assert refused.returncode != 0
    assert "add --sdm apptainer" in refused.output
    fresh.edit("config/frameworks.yaml", one, "sha256:" + "3" * 64)
    second = fresh.dry_run(target)
    assert _paths(first, "gemm").isdisjoint(_paths(second, "gemm"))
    for op in ("moe", *ATTENTION):
        assert _paths(first, op) == _paths(second, op) != set()


def _paths(run: Run, op: str) -> set[str]:
    prefix = f"results/shards/stub/2.0.0/cpu/{op}/"
    return {word for word in run.output.replace(",", " ").split() if word.startswith(prefix)}


def _stale(run: Run, op: str) -> int:
    return len([path for path in _paths(run, op) if ".failures." not in path])


def test_the_dataset_is_republished_after_a_revert_by_hand(published: Project) -> None:
    """The published name may be pointed at an older dataset, or deleted: the next run puts it right."""
    current = published.path(TARGET).readlink()
    edit_check(published)
    published.make()
    assert published.path(TARGET).readlink() != current
    published.path(TARGET).unlink()
    published.path(TARGET).symlink_to(current)
    jobs = published.make().jobs
    assert MEASURE not in jobs
    assert jobs["publish_dataset"] == 1
    published.path(TARGET).unlink()
    assert published.make().jobs == {"publish_dataset": 1}
    assert Path(published.path(TARGET), "provenance.json").exists()
    assert STUB in published.path(f"{TARGET}/provenance.json").read_text(encoding="utf-8")


def test_an_audit_sample_is_measured_again_after_the_others(published: Project) -> None:
    """Nothing published is measured again for it, and its own values are no rows."""
    measured, rows = published.measured(), table(published)
    published.edit("config/config.yaml", "audit_share: 0", "audit_share: 0.3")
    run = published.make()
    assert run.jobs[MEASURE] == run.jobs[ASSEMBLE] == 4
    again = published.measured() - measured
    provenance = json.loads(published.path(f"{TARGET}/provenance.json").read_text(encoding="utf-8"))
    stated = provenance["repeatability"]
    assert sum(entry["compared"] for entry in stated.values()) == again > 10
    assert {entry["p95"] for entry in stated.values()} == {0.0}
    assert table(published) == rows
    assert published.dry_run().jobs == {}
