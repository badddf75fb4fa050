from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from opatlas.errors import UserError
from opatlas.ops.ids import parse_id
from opatlas.ops.spec import field_column, row_column
from opatlas.planning.dataset import PlannedDataset, load
from opatlas.planning.shards import Shard
from opatlas.shards import file
from opatlas.tables.canonical import content_hash

REPOSITORY = Path(__file__).parents[3]
Make = Callable[..., dict[str, Any]]


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_every_planned_case_becomes_a_row_with_its_fields(lab: Any) -> None:
    lab.write()
    record = lab.merge()
    table = pq.read_table(lab.folder / "gemm_perf.parquet").to_pylist()
    cases = {case_id for shard in lab.shards("gemm") for case_id in shard.ids}
    assert {row["case_id"] for row in table} == cases
    for row in table:
        case = parse_id(row["case_id"])[1]
        assert (row["gemm_dtype"], row["m"], row["n"], row["k"]) == (case.dtype, case.m, case.n, case.k)
    first = table[0]
    assert (first["framework"], first["version"], first["op_name"]) == ("Torch", "2.13.0", "gemm")
    assert (first["device"], first["kernel_source"]) == ("AMD EPYC", "torch_cpu")
    assert first["shard"] in {shard.key for shard in lab.shards("gemm")}
    assert first["power_w"] is None
    assert record["tables"]["gemm_perf"]["rows"] == len(cases)
    assert record["kernels"]["gemm"] == {"torch_cpu": {"copy": len(cases), "mkl": len(cases)}}
    assert json.loads((lab.folder / "tables.json").read_bytes()) == record


def test_rows_are_sorted_by_the_tables_key(lab: Any) -> None:
    lab.write()
    lab.merge()
    table = pq.read_table(lab.folder / "gemm_perf.parquet").to_pylist()
    keys = [(row["gemm_dtype"], row["m"], row["n"], row["k"]) for row in table]
    assert keys == sorted(keys)


def test_the_order_of_shards_and_a_second_merge_change_no_byte(fine_lab: Any) -> None:
    """FIELD D11: five random orders."""
    fine_lab.write()
    fine_lab.merge()
    reference = files(fine_lab.folder)
    shards = list(fine_lab.planned.shards)
    assert len(shards) > 4
    for seed in range(5):
        random.Random(seed).shuffle(shards)
        fine_lab.planned = replace(fine_lab.planned, shards=tuple(shards))
        fine_lab.merge()
        tables = {name: content for name, content in files(fine_lab.folder).items() if name != "tables.json"}
        assert tables == {name: content for name, content in reference.items() if name != "tables.json"}


def test_how_cases_are_grouped_changes_only_the_shard_column(lab: Any, fine_lab: Any) -> None:
    lab.write()
    lab.merge()
    fine_lab.write()
    fine_lab.merge()
    one, two = (
        pq.read_table(own.folder / "moe_perf.parquet").drop_columns(["shard"]) for own in (lab, fine_lab)
    )
    assert content_hash(one) == content_hash(two)


def test_failures_are_a_table_of_their_own(lab: Any, make_failure: Make) -> None:
    shard = lab.shards("moe")[0]
    lab.write()
    lab.write([shard], lambda rows: (rows[1:], [make_failure(rows[0]["case_id"], group="stale name")]))
    record = lab.merge()
    failures = pq.read_table(lab.folder / "failures.parquet").to_pylist()
    assert [(f["case_id"], f["table"], f["op"], f["shard"]) for f in failures] == [
        (shard.ids[0], "moe_perf", "moe", shard.key)
    ]
    op = next(op for op in lab.planned.plan.ops if op.op.name == "moe")
    assert failures[0]["group"] == op.group(op.cases[op.ids.index(shard.ids[0])])
    assert record["tables"]["failures"]["rows"] == 1
    assert record["tables"]["moe_perf"]["rows"] == len(op.cases) - 1


def test_a_shard_of_failures_alone_leaves_a_table_without_rows(lab: Any, make_failure: Make) -> None:
    lab.write()
    lab.write(lab.shards("moe"), lambda rows: ([], [make_failure(row["case_id"]) for row in rows]))
    lab.merge()
    table = pq.read_table(lab.folder / "moe_perf.parquet")
    assert table.num_rows == 0
    assert table.schema.field("latency").type == pa.float64()


def test_optional_columns_merge_whether_they_are_empty_or_not(fine_lab: Any) -> None:
    """FIELD D7: a shard with power beside shards without."""
    shards = fine_lab.shards("gemm")
    fine_lab.write()
    fine_lab.write(shards[:1], lambda rows: ([{**row, "power_w": 81.5} for row in rows], []))
    fine_lab.merge()
    power = pq.read_table(fine_lab.folder / "gemm_perf.parquet")["power_w"]
    assert power.type == pa.float64()
    assert power.null_count == len(power) - len(shards[0].ids)


def through_pandas(path: Path, **columns: pa.DataType) -> None:
    """Rewrites a shard the way another tool would: through a data frame, text as large_string."""
    table = pq.read_table(path)
    metadata = table.schema.metadata
    frame = pa.Table.from_pandas(table.to_pandas(), preserve_index=False).select(table.schema.names)
    types = {
        name: pa.large_string() for name in table.schema.names if table.schema.field(name).type == "string"
    }
    fields = [pa.field(f.name, {**types, **columns}.get(f.name, f.type)) for f in table.schema]
    pq.write_table(frame.cast(pa.schema(fields)).replace_schema_metadata(metadata), path)


def test_a_shard_that_another_tool_rewrote_loses_no_row(fine_lab: Any) -> None:
    fine_lab.write()
    fine_lab.merge()
    reference = files(fine_lab.folder)
    through_pandas(fine_lab.root / fine_lab.shards("gemm")[1].path)
    fine_lab.merge()
    assert files(fine_lab.folder) == reference


def test_a_conflict_of_types_leaves_the_target_as_it_was(fine_lab: Any) -> None:
    fine_lab.write()
    fine_lab.merge()
    reference = files(fine_lab.folder)
    shard = fine_lab.shards("gemm")[1]
    through_pandas(fine_lab.root / shard.path, generation=pa.float64())
    with pytest.raises(UserError, match=r"column generation is of type double and must be int64") as error:
        fine_lab.merge()
    assert str(shard.path) in str(error.value)
    assert files(fine_lab.folder) == reference


def test_a_missing_shard_is_named(lab: Any) -> None:
    lab.write()
    shard = lab.shards("moe")[0]
    (lab.root / shard.path).unlink()
    with pytest.raises(UserError, match=f"{shard.path.name}: is missing"):
        lab.merge()
    assert not lab.folder.exists()


def test_a_shard_of_another_plan_is_refused(lab: Any, tmp_path: Path) -> None:
    """Its name is right by its first digits, its fingerprint is another one."""
    lab.write()
    shard = lab.shards("moe")[0]
    other = Shard(shard.dataset, "moe", shard.name, shard.context, shard.ids[1:], shard.costs_s[1:], {})
    lab.write([other])
    for source, target in (
        (other.path, shard.path),
        (file.failures_path(other.path), file.failures_path(shard.path)),
    ):
        shutil.copy(lab.root / source, lab.root / target)
    with pytest.raises(UserError, match=f"{shard.path.name}: its manifest is that of {other.path.name}"):
        lab.merge()


def test_a_shard_of_another_dataset_is_refused(lab: Any) -> None:
    lab.write()
    lab.write(lab.shards("moe"), dataset="torch/2.11.0/cpu")
    with pytest.raises(UserError, match=r"is a shard of the dataset torch/2.11.0/cpu"):
        lab.merge()


def test_foreign_files_are_ignored_and_reported(lab: Any, tmp_path: Path) -> None:
    """A staging file, and another backend's shard, in the folder of this dataset's shards."""
    lab.write()
    lab.merge()
    reference = files(lab.folder)
    shard = lab.shards("gemm")[0]
    folder = (lab.root / shard.path).parent
    (folder / "gemm_perf.txt").write_text("gemm,bfloat16,1,2,3,0.5\n")
    stray = Shard(shard.dataset, "moe", "s1", shard.context, shard.ids, shard.costs_s, {})
    lab.write([stray], dataset="vllm/0.24.0/sm90")
    for source in (stray.path, file.failures_path(stray.path)):
        (lab.root / source).rename(folder / source.name)
    (folder / f"s0-{'a' * 16}.parquet").write_bytes(b"half a fi")
    record = lab.merge()
    names = [text.split(": ")[0].rpartition("/")[2] for text in record["foreign"]]
    assert names == ["gemm_perf.txt", f"s0-{'a' * 16}.parquet", stray.path.name]
    assert [text.partition(": ")[2][:20] for text in record["foreign"]] == [
        "is no file of a shard"[:20],
        "is truncated or no parquet"[:20],
        "is a shard of vllm/0.24.0"[:20],
    ]
    tables = {name: content for name, content in files(lab.folder).items() if name != "tables.json"}
    assert tables == {name: content for name, content in reference.items() if name != "tables.json"}


def test_an_audit_sample_is_not_foreign_today_nor_under_another_plan(lab: Any) -> None:
    sampled = [load(REPOSITORY, "torch/2.13.0/cpu", {"audit_share": share}) for share in (0.2, 0.4)]
    for planned in sampled:
        lab.planned = planned
        lab.write(planned.all_shards)
    assert len({shard.path for planned in sampled for shard in planned.repeats if shard.op == "gemm"}) == 2
    assert lab.merge()["foreign"] == []


def with_table(planned: PlannedDataset, op: str, **values: Any) -> PlannedDataset:
    """The plan with another declaration of an op's table, and of the op."""
    own = {key: values.pop(key) for key in ("rows",) if key in values}
    ops = tuple(
        replace(entry, op=replace(entry.op, table=replace(entry.op.table, **values), **own))
        if entry.op.name == op
        else entry
        for entry in planned.plan.ops
    )
    return replace(planned, plan=replace(planned.plan, ops=ops))


def test_two_rows_of_one_key_are_refused_with_both_sources(lab: Any) -> None:
    lab.planned = with_table(lab.planned, "gemm", key=("gemm_dtype", "n", "k"))
    lab.write()
    with pytest.raises(UserError, match=r"gemm_perf: \d+ rows share the key") as error:
        lab.merge()
    lines = str(error.value).splitlines()
    assert len(lines) == 3
    assert all("latency 50." in line and "attempt a1" in line and " of s" in line for line in lines[1:])
    assert not lab.folder.exists()


def test_rows_of_one_case_are_told_apart_by_what_they_bring(lab: Any, make_row: Make) -> None:
    table = next(op.op.table for op in lab.planned.plan.ops if op.op.name == "moe")
    lab.planned = with_table(
        lab.planned,
        "moe",
        columns=(*table.columns, row_column("phase", "string")),
        key=(*table.key, "phase"),
        measured=(("send_us", "us"), ("receive_us", "us")),
        rows=2,
    )
    lab.write(op for op in lab.planned.shards if op.op != "moe")

    def twice(rows: list[dict[str, Any]]) -> Any:
        return [
            {**row, "part": phase, "values": json.dumps({"phase": phase, "send_us": 1, "receive_us": 2.5})}
            for row in rows
            for phase in ("dispatch", "combine")
        ], []

    lab.write(lab.shards("moe"), twice)
    lab.merge()
    merged = pq.read_table(lab.folder / "moe_perf.parquet")
    assert merged.num_rows == 2 * sum(len(shard.ids) for shard in lab.shards("moe"))
    assert merged["phase"].to_pylist()[:2] == ["combine", "dispatch"]
    assert set(merged["receive_us"].to_pylist()) == {2.5}
    assert "latency" not in merged.column_names
    lab.write(lab.shards("moe"), lambda rows: ([{**row, "values": "{}"} for row in rows], []))
    with pytest.raises(UserError, match="brings no phase, send_us, receive_us"):
        lab.merge()


def test_one_time_under_another_name_and_unit_is_the_latency(lab: Any) -> None:
    lab.planned = with_table(lab.planned, "moe", measured=(("avg_us", "us"),))
    lab.write()
    lab.merge()
    table = pq.read_table(lab.folder / "moe_perf.parquet")
    row = table.to_pylist()[0]
    assert table.schema.field("avg_us").metadata == {b"unit": b"us"}
    assert np.isclose(row["avg_us"], 1000 * (50 + sum(row["case_id"].encode()) % 1000 / 1000))


def test_ops_that_share_a_table_must_declare_the_same_columns(lab: Any) -> None:
    lab.write()
    lab.planned = with_table(
        lab.planned, "moe", name="gemm_perf", columns=(field_column("m", "int64", "tokens"),)
    )
    with pytest.raises(UserError, match="gemm_perf: gemm and moe declare different columns"):
        lab.merge()


def test_merging_takes_no_notice_of_pandas(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import pandas as pd

    lab.write()
    lab.merge()
    reference = files(lab.folder)
    for name in ("DataFrame", "Series"):
        monkeypatch.delattr(pd, name)
    lab.merge()
    assert files(lab.folder) == reference
