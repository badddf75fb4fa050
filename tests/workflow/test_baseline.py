"""A run with a baseline: it compares at every ask, and measures and publishes nothing for it."""

from __future__ import annotations

import json
import shutil

import pyarrow.compute as pc
import pyarrow.parquet as pq
from support.project import TARGET, Project

GEMM = "gemm_perf.parquet"


def keep_older(project: Project, factor: float) -> str:
    """Another dataset in this tree, whose gemm latencies are those of the published one times a factor."""
    folder = project.path("results/older")
    shutil.copytree(project.path(TARGET).resolve(), folder)
    table = pq.read_table(folder / GEMM)
    index = table.column_names.index("latency")
    scaled = table.set_column(index, table.schema.field(index), pc.multiply(table["latency"], factor))
    pq.write_table(scaled, folder / GEMM)
    return "baseline=older"


def comparison(project: Project) -> dict[str, object]:
    return json.loads(project.path(f"{TARGET}.baseline.json").read_text(encoding="utf-8"))


def test_a_run_compares_with_its_baseline_at_every_ask_and_does_nothing_else(published: Project) -> None:
    asked = keep_older(published, 2.0)
    link, measured = published.path(TARGET).readlink(), published.measured()
    for _ in range(2):
        run = published.make(TARGET, "--config", asked)
        assert run.jobs == {}
        assert "gemm float32: the median is 0.500 times the baseline's" in run.output
    assert published.path(f"{TARGET}.baseline.html").exists()
    assert comparison(published)["answer"] == "different"
    assert (published.path(TARGET).readlink(), published.measured()) == (link, measured)
    assert published.make(TARGET).jobs == {}


def test_a_first_run_compares_too_and_leaves_no_trace_of_it_in_the_dataset(fresh: Project) -> None:
    fresh.make()
    asked = keep_older(fresh, 1.0)
    before = {p.name: p.read_bytes() for p in fresh.path(TARGET).iterdir()}
    for folder in ("results/.datasets", "results/tables"):
        shutil.rmtree(fresh.path(folder))
    fresh.path(TARGET).unlink()
    run = fresh.make(TARGET, "--config", asked)
    assert set(run.jobs) <= {"merge_tables", "check_tables", "publish_dataset"}
    assert comparison(fresh)["answer"] == "same"
    assert {p.name: p.read_bytes() for p in fresh.path(TARGET).iterdir()} == before


def test_a_wrong_baseline_is_one_message_before_anything_runs(fresh: Project) -> None:
    for arguments in (["-n"], []):
        run = fresh.snakemake(*arguments, TARGET, "--config", "baseline=stub/0.9.0/cpu")
        assert run.returncode == 1
        assert "opatlas: baseline stub/0.9.0/cpu: there is no such dataset or folder" in run.output
        assert "Traceback" not in run.output
    assert fresh.measured() == 0


def test_a_dataset_is_no_baseline_of_itself(published: Project) -> None:
    run = published.snakemake("-n", TARGET, "--config", f"baseline={TARGET}")
    assert run.returncode == 1
    assert "is the dataset itself" in run.output


def test_two_datasets_are_compared_by_hand(published: Project) -> None:
    keep_older(published, 1.25)
    run = published.opatlas("compare", TARGET, "older", "--report", "results/by hand/report")
    assert run.returncode == 0, run.output
    assert "0.800 times the baseline's" in run.stdout
    assert published.path("results/by hand/report.html").exists()
    nothing = published.opatlas("compare", TARGET)
    assert nothing.returncode == 1
    assert "name a baseline" in nothing.stderr
