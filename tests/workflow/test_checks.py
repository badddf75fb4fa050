"""What checks found is told at the end of a run, and looked for again at every ask."""

from __future__ import annotations

import json

from support.project import TARGET, Project

ASK = f"{TARGET}.checks.json"


def test_a_refused_dataset_is_checked_again_at_every_ask_and_told_at_the_end(published: Project) -> None:
    published.edit("config/config.yaml", "units: {factor: 100, shards: 3}", "units: {factor: 1, shards: 1}")
    for jobs in ({"publish_dataset", "merge_tables"}, {"publish_dataset"}):
        run = published.snakemake(TARGET)
        assert run.returncode != 0
        assert set(run.jobs) == jobs
        told = run.stdout.splitlines()
        head = next(line for line in told if line.startswith(f"{TARGET}: ") and " checks, " in line)
        assert " blocking and " in head
        assert "blocking  units" in told[told.index(head) + 1]
        assert "Complete log" not in "\n".join(told[told.index(head) :])


def test_a_published_dataset_is_checked_at_every_ask(published: Project) -> None:
    for _ in range(2):
        run = published.snakemake(ASK)
        assert run.returncode == 0, run.output
        assert "checks, 0 blocking" in run.output
        assert json.loads(published.path(ASK).read_text(encoding="utf-8"))["passed"] is True
    table = published.path(f"{TARGET}/gemm_perf.parquet")
    table.write_bytes(table.read_bytes()[:-1])
    run = published.snakemake(ASK)
    assert run.returncode != 0
    assert "blocking  schema" in run.output
    assert json.loads(published.path(ASK).read_text(encoding="utf-8"))["passed"] is False


def test_checking_what_was_published_of_another_plan_says_what_to_do(published: Project) -> None:
    published.edit("config/config.yaml", "units: {factor: 100", "units: {factor: 50")
    run = published.snakemake(ASK)
    assert run.returncode != 0
    assert "was published of another plan than today's" in run.output
    assert "Traceback" not in run.output
