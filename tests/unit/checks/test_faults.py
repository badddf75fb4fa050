"""Each check, proved by a fault planted in a good dataset: the check names it, and no other fires."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from opatlas.checks import evidence
from opatlas.checks.evidence import Evidence
from opatlas.checks.finding import ADVISORY, BLOCKING, Finding
from opatlas.checks.report import Report
from opatlas.checks.run import CHECKS, check_dataset, run
from opatlas.config.checks import Accepted
from opatlas.config.frameworks import Runtime
from opatlas.errors import UserError
from opatlas.planning.dataset import load as load_dataset

REPOSITORY = Path(__file__).parents[3]
TABLE = "gemm_perf"
Make = Callable[..., dict[str, Any]]


@pytest.fixture
def good(merged_lab: Any) -> Evidence:
    return evidence.load(merged_lab.planned, merged_lab.folder)


def found(good: Evidence, *severities: str) -> list[Finding]:
    report = run(good, "results/it")
    return [
        finding for finding in report.findings if finding.severity in (severities or (BLOCKING, ADVISORY))
    ]


def only(findings: list[Finding], check: str, severity: str = BLOCKING) -> Finding:
    """The one finding there is."""
    assert [(f.check, f.severity) for f in findings] == [(check, severity)], findings
    return findings[0]


def planted(good: Evidence, table: pa.Table, name: str = TABLE) -> Evidence:
    return replace(good, tables={**good.tables, name: table})


def with_column(table: pa.Table, name: str, values: Any) -> pa.Table:
    index = table.column_names.index(name)
    field = table.schema.field(name)
    return table.set_column(index, field, pa.array(values, field.type))


def change_first(table: pa.Table, name: str, value: Any, count: int = 1) -> pa.Table:
    values = table[name].to_pylist()
    return with_column(table, name, [value] * count + values[count:])


def test_a_good_dataset_has_no_finding(good: Evidence) -> None:
    assert found(good) == []


def test_a_dropped_row(good: Evidence) -> None:
    finding, hole = found(planted(good, good.tables[TABLE].slice(1)))
    assert (finding.check, hole.check) == ("completeness", "ragged")
    assert finding.table == TABLE
    assert finding.count == 1
    assert finding.examples == (good.tables[TABLE]["case_id"][0].as_py(),)
    assert "neither row nor failure" in finding.message


def test_a_row_twice(good: Evidence) -> None:
    table = good.tables[TABLE]
    findings = found(planted(good, pa.concat_tables([table, table.slice(0, 1)])))
    # A case that is there twice also has its key twice.
    assert [f.check for f in findings] == ["completeness", "keys"]


def test_two_cases_under_one_key(good: Evidence) -> None:
    table = good.tables[TABLE]
    first = table.slice(0, 1).to_pylist()[0]
    mislabelled = table
    for column in ("gemm_dtype", "m", "n", "k"):
        values = mislabelled[column].to_pylist()
        mislabelled = with_column(mislabelled, column, [values[0], values[0], *values[2:]])
    finding, *labels = found(planted(good, mislabelled))
    assert finding.check == "keys"
    assert {label.check for label in labels} == {"labels"}
    assert finding.examples == (
        f"gemm_dtype={first['gemm_dtype']}, m={first['m']}, n={first['n']}, k={first['k']}",
    )


def test_a_row_of_a_case_that_is_not_planned(good: Evidence) -> None:
    table = good.tables[TABLE]
    stranger = change_first(table.slice(0, 1), "case_id", "gemm/dtype=bfloat16/m=3/n=3/k=3")
    stranger = change_first(stranger, "m", 3)
    finding = only(found(planted(good, pa.concat_tables([table, stranger]))), "completeness")
    assert finding.examples == ("gemm/dtype=bfloat16/m=3/n=3/k=3",)


def test_a_case_with_both_row_and_failure(fine_lab: Any, make_failure: Make, good: Evidence) -> None:
    case = good.tables[TABLE]["case_id"][0].as_py()
    shard = good.tables[TABLE]["shard"][0].as_py()
    record = {**make_failure(case), "table": TABLE, "op": "gemm", "shard": shard}
    failures = pa.Table.from_pylist([record], schema=good.failures.schema)
    finding = only(found(replace(good, failures=failures)), "completeness")
    assert finding.message == "cases have both rows and a failure"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.0, -1.0])
def test_a_latency_that_is_none(good: Evidence, value: float) -> None:
    table = change_first(good.tables[TABLE], "latency", value)
    finding = only(found(planted(good, table), BLOCKING), "values")
    assert finding.selector == "latency"
    assert finding.count == 1


def test_zero_is_a_latency_where_the_op_says_so(good: Evidence) -> None:
    ops = tuple(
        replace(op, op=replace(op.op, zero=True)) if op.op.name == "gemm" else op
        for op in good.planned.plan.ops
    )
    planned = replace(good.planned, plan=replace(good.planned.plan, ops=ops))
    table = change_first(good.tables[TABLE], "latency", 0.0)
    assert found(replace(planted(good, table), planned=planned), BLOCKING) == []


def test_a_spread_that_is_none(good: Evidence) -> None:
    finding = only(found(planted(good, change_first(good.tables[TABLE], "latency_ci", -0.1))), "values")
    assert "latency_ci" in finding.message


def test_a_unit_wrong_by_a_thousand(good: Evidence) -> None:
    table = good.tables[TABLE]
    shard = table["shard"][0].as_py()
    wrong = pc.equal(table["shard"], shard)
    latency = pc.if_else(wrong, pc.multiply(table["latency"], 1000.0), table["latency"])
    finding = only(found(planted(good, with_column(table, "latency", latency.combine_chunks()))), "units")
    assert finding.selector == f"shard={shard}"
    assert finding.count == pc.sum(wrong).as_py()


def test_a_row_faster_than_light_is_advisory_on_a_cpu(good: Evidence) -> None:
    table = change_first(good.tables[TABLE], "latency", 1e-9)
    finding = only(found(planted(good, table)), "roofline", ADVISORY)
    assert "at least" in finding.examples[0]


def test_a_host_clock_that_is_not_the_platforms(good: Evidence) -> None:
    table = change_first(good.tables[TABLE], "timing_method", "cuda_graph")
    finding = only(found(planted(good, table)), "timing")
    assert "cuda_graph" in finding.message


def test_throttled_rows_are_reported(good: Evidence) -> None:
    finding = only(
        found(planted(good, change_first(good.tables[TABLE], "throttled", True, 2))), "timing", ADVISORY
    )
    assert finding.count == 2
    assert "node1" in finding.message


def test_another_framework_version(good: Evidence) -> None:
    """FIELD D1: the exact version that was imported is held against the directory's."""
    record = dict(good.record)
    record["attempts"] = {"a1": {**record["attempts"]["a1"], "versions": {"framework": "2.12.1+cpu"}}}
    findings = found(replace(good, record=record))
    assert {f.check for f in findings} == {"runtime"}
    assert findings[0].examples == ("a1: 2.12.1+cpu",)


def test_two_builds_of_one_version(good: Evidence) -> None:
    """FIELD D3: local suffixes share a directory, and never a table."""
    record = dict(good.record)
    second = {**record["attempts"]["a1"], "id": "a2", "versions": {"framework": "2.13.0+cu130"}}
    record["attempts"] = {**record["attempts"], "a2": second}
    shards = [dict(shard) for shard in record["shards"]]
    next(shard for shard in shards if shard["op"] == "gemm")["attempts"] = ["a2"]
    record["shards"] = shards
    finding = only(found(replace(good, record=record)), "runtime")
    assert finding.examples == ("2.13.0+cpu", "2.13.0+cu130")


def test_a_stale_image_digest(good: Evidence) -> None:
    runtime = Runtime("registry/it@sha256:" + "a" * 64)
    ops = tuple(replace(op, runtime=runtime) if op.op.name == "gemm" else op for op in good.planned.plan.ops)
    planned = replace(good.planned, plan=replace(good.planned.plan, ops=ops))
    digest = ["sha256:" + "a" * 64] * good.tables[TABLE].num_rows
    pinned = with_column(good.tables[TABLE], "image_digest", digest)
    assert found(replace(planted(good, pinned), planned=planned)) == []
    stale = change_first(pinned, "image_digest", "sha256:" + "b" * 64)
    finding = only(found(replace(planted(good, stale), planned=planned)), "runtime")
    assert finding.count == 1
    assert "b" * 64 in finding.message
    missing = change_first(pinned, "image_digest", None)
    assert "None" in only(found(replace(planted(good, missing), planned=planned)), "runtime").message


@pytest.fixture(scope="session")
def on_gpu() -> Any:
    """A planned dataset of a GPU platform, cut down."""
    cut = {"audit_share": 0, "subset": "few", "limit": 150, "ops": "gemm,attention_generation"}
    return load_dataset(REPOSITORY, "torch/2.11.0/sm90@few", cut)


@pytest.fixture
def good_gpu(on_gpu: Any, lab: Any, make_attempt: Make) -> Evidence:
    lab.planned = on_gpu
    place = {"timing_method": "cuda_graph", "device": "NVIDIA H200", "gpu_uuid": "GPU-1", "latency": 1e4}
    lab.write(
        change=lambda rows: ([{**row, **place} for row in rows], []),
        attempts=[make_attempt(versions={"framework": "2.11.0+cu128"})],
    )
    lab.merge()
    return evidence.load(lab.planned, lab.folder)


def test_a_good_dataset_of_a_gpu(good_gpu: Evidence) -> None:
    assert found(good_gpu, BLOCKING) == []


def test_a_row_faster_than_light(good_gpu: Evidence) -> None:
    name = "generation_attention_perf"
    table = change_first(good_gpu.tables[name], "latency", 1e-9)
    finding = only(found(planted(good_gpu, table, name), BLOCKING), "roofline")
    assert finding.table == name


def test_rows_timed_by_the_hosts_clock(good_gpu: Evidence) -> None:
    table = change_first(good_gpu.tables[TABLE], "timing_method", "cpu_perf_counter")
    assert only(found(planted(good_gpu, table), BLOCKING), "timing").count == 1


def test_rows_of_another_gpu(good_gpu: Evidence) -> None:
    """FIELD D9: an H100's rows are none of an H200's."""
    table = change_first(good_gpu.tables[TABLE], "device", "NVIDIA H100 80GB HBM3")
    finding = only(found(planted(good_gpu, table), BLOCKING), "runtime")
    assert "NVIDIA H100 80GB HBM3 and must be NVIDIA H200" in finding.message


def test_a_precision_without_a_ceiling_is_named(good: Evidence) -> None:
    platform = good.planned.dataset.platform
    peaks = replace(platform.peaks, flops={"float32": 1e12})
    dataset = replace(good.planned.dataset, platform=replace(platform, peaks=peaks))
    planned = replace(good.planned, plan=replace(good.planned.plan, dataset=dataset))
    findings = found(replace(good, planned=planned))
    assert {f.check for f in findings} == {"roofline"}
    assert "bfloat16" in findings[0].message


def failing(lab: Any, make_failure: Make, op: str, count: int) -> Evidence:
    """A dataset in which the first cases of an op's shards failed."""
    left = count

    def lose(rows: list[dict[str, Any]]) -> Any:
        nonlocal left
        lost = rows[:left]
        left -= len(lost)
        return rows[len(lost) :], [make_failure(row["case_id"]) for row in lost]

    lab.write()
    lab.write(lab.shards(op), lose)
    lab.merge()
    return evidence.load(lab.planned, lab.folder)


@pytest.mark.parametrize(("share", "severity"), [(0.05, None), (0.2, ADVISORY), (0.4, BLOCKING)])
def test_the_share_of_failed_cases(
    fine_lab: Any, make_failure: Make, share: float, severity: str | None
) -> None:
    cases = sum(len(shard.ids) for shard in fine_lab.shards("attention_generation"))
    findings = found(failing(fine_lab, make_failure, "attention_generation", int(cases * share) + 1))
    assert [f.severity for f in findings if not f.selector] == ([severity] if severity else [])


def group_of(lab: Any, op: str, size: int) -> tuple[str, set[str]]:
    """A (model, dtype) group of an op with at least `size` cases, and its cases."""
    plan = next(entry for entry in lab.planned.plan.ops if entry.op.name == op)
    groups: dict[str, set[str]] = {}
    for case, case_id in zip(plan.cases, plan.ids, strict=True):
        groups.setdefault(plan.group(case), set()).add(case_id)
    return min(((name, ids) for name, ids in groups.items() if len(ids) >= size), key=lambda g: len(g[1]))


def test_a_whole_group_that_fails_and_one_that_is_accepted(fine_lab: Any, make_failure: Make) -> None:
    name, cases = group_of(fine_lab, "attention_generation", 20)

    def lose(rows: list[dict[str, Any]]) -> Any:
        return (
            [row for row in rows if row["case_id"] not in cases],
            [make_failure(row["case_id"]) for row in rows if row["case_id"] in cases],
        )

    fine_lab.write(change=lose)
    fine_lab.merge()
    lost = evidence.load(fine_lab.planned, fine_lab.folder)
    table = "generation_attention_perf"
    assert any(f.selector == f"group={name}" and f.severity == BLOCKING for f in found(lost))
    accepted = (
        Accepted(table, name, "the kernel is broken upstream"),
        Accepted(table, "other group", "was broken once"),
    )
    fine_lab.settings(checks=replace(fine_lab.planned.config.settings.checks, accepted=accepted))
    ragged, *accepted = found(replace(lost, planned=fine_lab.planned))
    assert [f.severity for f in accepted] == [ADVISORY, ADVISORY]
    assert ragged.check == "ragged"
    assert "is accepted: the kernel is broken upstream" in accepted[0].message
    assert "has no failure" in accepted[1].message


def test_nothing_measured(lab: Any) -> None:
    ops = tuple(replace(op, runner=False) for op in lab.planned.plan.ops)
    lab.planned = replace(lab.planned, plan=replace(lab.planned.plan, ops=ops), shards=())
    lab.merge()
    findings = check_dataset(lab.planned, lab.folder).findings
    assert [f.message for f in findings if f.severity == BLOCKING] == ["nothing was measured"]
    assert "gemm is planned and has no runner" in {f.message for f in findings}


def test_foreign_files(fine_lab: Any) -> None:
    fine_lab.write()
    folder = (fine_lab.root / fine_lab.shards("gemm")[0].path).parent
    (folder / "gemm_perf.txt").touch()
    fine_lab.merge()
    findings = found(evidence.load(fine_lab.planned, fine_lab.folder))
    assert "gemm_perf.txt: is no file of a shard" in only(findings, "foreign", ADVISORY).examples[0]


def rewritten(lab: Any, change: Callable[[pa.Table], pa.Table]) -> Report:
    path = lab.folder / f"{TABLE}.parquet"
    pq.write_table(change(pq.read_table(path)), path)
    return check_dataset(lab.planned, lab.folder)


def retyped(name: str, type: pa.DataType) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        index = table.column_names.index(name)
        field = table.schema.field(name).with_type(type)
        return table.set_column(index, field, table[name].cast(type))

    return change


def in_microseconds(table: pa.Table) -> pa.Table:
    index = table.column_names.index("latency")
    field = table.schema.field("latency").with_metadata({"unit": "us"})
    return table.set_column(index, field, table["latency"])


def without_device(table: pa.Table) -> pa.Table:
    index = table.column_names.index("device")
    return table.set_column(index, "device", pa.nulls(table.num_rows, pa.string()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (retyped("m", pa.float64()), "column m is of type double and must be int64"),
        (retyped("samples", pa.int32()), "column samples is of type int32 and must be int64"),
        (lambda table: table.drop_columns(["k"]), "column k is missing"),
        (lambda table: table.append_column("extra", table["m"]), "column extra is unexpected"),
        (in_microseconds, "column latency is in us and must be in ms"),
        (without_device, "column device has nulls"),
        (lambda table: table.slice(1), "its content is not what was merged"),
    ],
)
def test_a_table_of_another_schema_or_content(
    fine_lab: Any, change: Callable[[pa.Table], pa.Table], message: str
) -> None:
    fine_lab.write()
    fine_lab.merge()
    findings = [f for f in rewritten(fine_lab, change).blocking if f.check == "schema"]
    assert [finding.message for finding in findings] == [f"{TABLE}.parquet: {message}"]


# Ways in which files of one table name have differed: order, optional columns, types, text, units.
ATTENTION = "context_attention_perf"
READ = {
    "as declared": lambda table: table,
    "columns reversed": lambda table: table.select(table.column_names[::-1]),
    "key columns first": lambda table: table.select(sorted(table.column_names)),
    "large text": retyped("attn_dtype", pa.large_string()),
}
REJECTED = {
    "no window_size": (lambda table: table.drop_columns(["window_size"]), "column window_size is missing"),
    "power added": (lambda table: table.append_column("power", table["latency"]), "power is unexpected"),
    "float sizes": (retyped("isl", pa.float64()), "column isl is of type double and must be int64"),
    "small sizes": (retyped("step", pa.int32()), "column step is of type int32 and must be int64"),
    "no kv_cache_dtype": (
        lambda table: table.drop_columns(["kv_cache_dtype"]),
        "column kv_cache_dtype is missing",
    ),
    "microseconds": (in_microseconds, "column latency is in us and must be in ms"),
}


def attention_rewritten(lab: Any, change: Callable[[pa.Table], pa.Table]) -> list[Finding]:
    lab.write()
    lab.merge()
    path = lab.folder / f"{ATTENTION}.parquet"
    pq.write_table(change(pq.read_table(path)), path)
    return check_dataset(lab.planned, lab.folder).blocking


@pytest.mark.parametrize("variant", READ)
def test_a_variant_of_a_table_is_read_into_the_one_schema(lab: Any, variant: str) -> None:
    """FIELD D5, with the next test."""
    assert attention_rewritten(lab, READ[variant]) == []


@pytest.mark.parametrize("variant", REJECTED)
def test_a_variant_of_a_table_that_says_something_else_is_rejected_by_name(lab: Any, variant: str) -> None:
    change, message = REJECTED[variant]
    (finding,) = attention_rewritten(lab, change)
    assert (finding.check, finding.table) == ("schema", ATTENTION)
    assert message in finding.message


def test_text_of_another_kind_is_no_difference(fine_lab: Any) -> None:
    fine_lab.write()
    fine_lab.merge()
    assert rewritten(fine_lab, retyped("gemm_dtype", pa.large_string())).blocking == []


@pytest.mark.parametrize("keep", [None, 0, 0.5, -1])
def test_a_table_that_is_truncated_or_gone(fine_lab: Any, keep: float | None) -> None:
    fine_lab.write()
    fine_lab.merge()
    path = fine_lab.folder / f"{TABLE}.parquet"
    content = path.read_bytes()
    if keep is None:
        path.unlink()
    else:
        path.write_bytes(content[: int(keep) if keep in (0, -1) else int(len(content) * keep)])
    findings = check_dataset(fine_lab.planned, fine_lab.folder).blocking
    assert [(finding.check, finding.table) for finding in findings] == [("schema", TABLE)]


def test_tables_of_another_plan_are_refused(fine_lab: Any, lab: Any) -> None:
    lab.write()
    lab.merge()
    with pytest.raises(UserError, match=r"tables\.json: the tables are those of another plan"):
        check_dataset(fine_lab.planned, lab.folder)
    (lab.folder / "tables.json").write_text("[")
    with pytest.raises(UserError, match=r"tables\.json: cannot be read"):
        check_dataset(lab.planned, lab.folder)


def test_every_check_is_in_the_record_and_blocking_findings_come_first(good: Evidence) -> None:
    table = change_first(change_first(good.tables[TABLE], "throttled", True), "latency", float("nan"))
    report = run(planted(good, table), "results/it")
    assert [finding.severity for finding in report.findings] == [BLOCKING, ADVISORY]
    record = report.record("f" * 64)
    assert record["passed"] is False
    assert record["checks"] == list(CHECKS)
    assert record["findings"][0]["check"] == "values"
    lines = report.text().splitlines()
    assert lines[0] == f"results/it: {len(CHECKS)} checks, 1 blocking and 1 advisory findings"
    assert "latency must be a finite number above zero" in lines[1]
    assert np.all([len(line) < 160 for line in lines])
