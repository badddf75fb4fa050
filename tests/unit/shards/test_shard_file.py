from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opatlas.harness.ticket import Key
from opatlas.shards import file
from opatlas.shards.file import Damaged
from opatlas.staleness.fingerprint import SHORT, Context, shard_fingerprint

CONTEXT = Context({"backend": "torch", "op": "gemm", "code": {}})


def row(m: int, **values: Any) -> dict[str, Any]:
    return {
        "case_id": f"gemm/m={m}",
        "generation": 0,
        "part": "",
        "values": None,
        "kernel_source": "torch_mm",
        "latency": 0.25 + m,
        "latency_mad": 0.01,
        "latency_ci": 0.002,
        "samples": 40,
        "stop_reason": "converged",
        "timing_method": "cpu_perf_counter",
        "sm_clock_mhz": None,
        "throttled": False,
        "power_w": None,
        "latency_sustained": None,
        "sm_clock_sustained_mhz": None,
        "kernels": ["mkl_gemm"],
        "notes": "{}",
        "attempt": "a1",
        "job_id": None,
        "node": "n1",
        "device": "AMD EPYC",
        "gpu_uuid": None,
        "framework_version": "2.13.0+cpu",
        "image_digest": None,
        **values,
    }


def failure(m: int, **values: Any) -> dict[str, Any]:
    return {
        "case_id": f"gemm/m={m}",
        "generation": 0,
        "class": "unsupported",
        "reason": None,
        "exception": "RuntimeError",
        "message": "no",
        "traceback": None,
        "group": "grid bfloat16",
        "node": "n1",
        "job_id": None,
        "attempt": "a1",
        "first": None,
        "repeat": None,
        **values,
    }


def manifest(rows: list[dict[str, Any]], failures: list[dict[str, Any]]) -> dict[str, Any]:
    keys = {Key(record["case_id"], record["generation"]) for record in (*rows, *failures)}
    return {
        "dataset": "torch/2.13.0/cpu",
        "op": "gemm",
        "shard": "s01",
        "fingerprint": shard_fingerprint(CONTEXT, keys),
        "context": dict(CONTEXT.parts),
        "context_fingerprint": CONTEXT.fingerprint,
        "cases": len(keys),
        "attempts": [{"id": "a1", "node": "n1"}],
        "controls": [],
    }


ROWS = [row(m) for m in range(8)]
FAILED = [failure(m) for m in range(8, 11)]


def write(folder: Path, rows: list[dict[str, Any]] = ROWS, failures: list[dict[str, Any]] = FAILED) -> Path:
    document = manifest(rows, failures)
    path = folder / f"s01-{document['fingerprint'][:SHORT]}.parquet"
    file.write(path, rows, failures, document)
    return path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = write(tmp_path)
    shard = file.read(path)
    by_name = [{name: record[name] for name in file.ROWS.names} for record in ROWS]
    assert shard.rows.to_pylist() == by_name
    assert shard.failures.num_rows == 3
    assert shard.manifest == file.read_manifest(path)
    assert shard.manifest["cases"] == 11
    assert shard.manifest["rows"] == 8
    assert file.read_keys(path) == sorted(Key(record["case_id"], 0) for record in (*ROWS, *FAILED))
    file.verify(path)
    assert file.shard_files(tmp_path) == [path]
    assert file.shard_files(tmp_path / "nowhere") == []
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([path.name, file.failures_path(path).name])


@given(st.permutations(ROWS), st.permutations(FAILED))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_bytes_do_not_depend_on_the_order_of_records(
    tmp_path: Path, rows: list[dict[str, Any]], failures: list[dict[str, Any]]
) -> None:
    reference = write(tmp_path / "a")
    other = write(tmp_path / "b", rows, failures)
    for one, two in ((reference, other), (file.failures_path(reference), file.failures_path(other))):
        assert one.read_bytes() == two.read_bytes()


def test_a_shard_of_failures_alone_and_one_of_rows_alone(tmp_path: Path) -> None:
    assert file.read(write(tmp_path / "a", [], FAILED)).rows.num_rows == 0
    assert file.read(write(tmp_path / "b", ROWS, [])).failures.num_rows == 0


def test_several_rows_of_one_case_count_as_one_case(tmp_path: Path) -> None:
    rows = [row(1, part="q"), row(1, part="k"), row(2)]
    shard = file.read(write(tmp_path, rows, []))
    assert shard.rows["part"].to_pylist() == ["k", "q", ""]
    assert shard.manifest["cases"] == 2


def test_text_that_is_no_utf8_is_kept_readable(tmp_path: Path) -> None:
    shard = file.read(write(tmp_path, ROWS, [failure(9, message="bad \udcff byte, good é")]))
    assert shard.failures["message"].to_pylist() == ["bad ? byte, good é"]


@pytest.mark.parametrize(
    ("rows", "failures", "message"),
    [
        ([row(1), row(1)], [], "two rows for one part"),
        ([row(1)], [failure(1)], "two outcomes"),
        ([row(1, latency="fast")], [], "not of the schema"),
        ([row(1, latency=None)], [], "latency must not be null"),
        ([row(1, surprise=1)], [], "no column for surprise"),
    ],
)
def test_wrong_records_are_not_written(
    tmp_path: Path, rows: list[dict[str, Any]], failures: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        write(tmp_path, rows, failures)
    assert not list(tmp_path.iterdir())


def test_outcomes_of_other_cases_than_the_shards_are_not_written(tmp_path: Path) -> None:
    document = manifest(ROWS, FAILED)
    with pytest.raises(ValueError, match="the shard has 11"):
        file.write(tmp_path / "x.parquet", ROWS, FAILED[1:], document)
    with pytest.raises(ValueError, match="fingerprint of what it holds"):
        file.write(tmp_path / "x.parquet", ROWS, [*FAILED[1:], failure(77)], document)


@pytest.mark.parametrize("keep", [0, 0.5, -1])
@pytest.mark.parametrize("which", ["rows", "failures"])
def test_a_truncated_file_is_damaged(tmp_path: Path, keep: float, which: str) -> None:
    path = write(tmp_path)
    victim = path if which == "rows" else file.failures_path(path)
    content = victim.read_bytes()
    victim.write_bytes(content[: int(keep) if keep in (0, -1) else int(len(content) * keep)])
    with pytest.raises(Damaged, match=f"{victim.name}: is truncated"):
        file.read_manifest(path)


def test_a_flipped_byte_is_found_wherever_it_is(tmp_path: Path) -> None:
    path = write(tmp_path, ROWS[:2], FAILED[:1])
    for victim in (path, file.failures_path(path)):
        content = victim.read_bytes()
        writer = content.index(b"parquet-cpp-arrow version")
        for place in range(0, len(content), 29):
            if writer <= place < writer + 40:
                # A file that names another writer may differ in its bytes.
                continue
            flipped = bytearray(content)
            flipped[place] ^= 0x10
            victim.write_bytes(flipped)
            with pytest.raises(Damaged):
                file.verify(path)
        victim.write_bytes(content)
    file.verify(path)


def test_damage_is_named(tmp_path: Path) -> None:
    path = write(tmp_path)
    with pytest.raises(Damaged, match=r"nothing.parquet: is missing"):
        file.read(path.with_name("nothing.parquet"))
    other = path.with_name(f"s0-{'0' * 16}.parquet")
    shutil.copy(path, other)
    shutil.copy(file.failures_path(path), file.failures_path(other))
    with pytest.raises(Damaged, match=f"its manifest is that of {path.name}"):
        file.read_manifest(other)
    file.failures_path(path).unlink()
    with pytest.raises(Damaged, match=r"failures.parquet: is missing"):
        file.read_manifest(path)
    pq.write_table(pa.table({"a": [1]}), file.failures_path(path))
    with pytest.raises(Damaged, match=r"no opatlas.failures in its footer"):
        file.read_manifest(path)


def test_failures_of_another_writing_are_damage(tmp_path: Path) -> None:
    path = write(tmp_path / "a")
    other = write(tmp_path / "b", ROWS, [failure(m, message="other") for m in range(8, 11)])
    shutil.copy(file.failures_path(other), file.failures_path(path))
    with pytest.raises(Damaged, match="names other failures"):
        file.read_manifest(path)


def _rewrite(path: Path, change: Any, document: Any = None) -> None:
    table = pq.read_table(path)
    text = json.dumps(document or json.loads(table.schema.metadata[file.MANIFEST])).encode()
    pq.write_table(change(table).replace_schema_metadata({file.MANIFEST: text}), path)


def test_counts_that_disagree_are_damage(tmp_path: Path) -> None:
    path = write(tmp_path)
    _rewrite(path, lambda table: table.slice(1))
    with pytest.raises(Damaged, match="holds 7 rows, and its manifest says 8"):
        file.read_manifest(path)


def test_a_value_that_was_changed_is_damage(tmp_path: Path) -> None:
    path = write(tmp_path)
    place = file.ROWS.names.index("latency")
    _rewrite(path, lambda t: t.set_column(place, t.schema.field(place), pa.array([9.0] * 8, pa.float64())))
    file.read_manifest(path)
    with pytest.raises(Damaged, match="its content has the hash"):
        file.read(path)


def test_a_file_rewritten_by_pandas_holds_the_same_rows(tmp_path: Path) -> None:
    """pandas 3 turns text into large_string; that is the same text."""
    path = write(tmp_path)
    before = file.read(path).rows

    def through_pandas(table: pa.Table) -> pa.Table:
        frame = pa.Table.from_pandas(table.to_pandas(), preserve_index=False)
        texts = [f.with_type(pa.large_string()) if f.type == pa.string() else f for f in table.schema]
        return frame.select(table.schema.names).cast(pa.schema(texts)).replace_schema_metadata(None)

    _rewrite(path, through_pandas)
    assert pq.read_schema(path).field("case_id").type == pa.large_string()
    assert file.read(path).rows.equals(before)


def test_a_column_of_another_type_is_named_with_both_types(tmp_path: Path) -> None:
    path = write(tmp_path)
    place = file.ROWS.names.index("latency")
    _rewrite(path, lambda t: t.set_column(place, "latency", pa.array(range(8), pa.int64())))
    with pytest.raises(Damaged, match=f"{path.name}: column latency is of type int64 and must be double"):
        file.read(path)


def test_an_empty_optional_column_keeps_its_type(tmp_path: Path) -> None:
    schema = pq.read_schema(write(tmp_path))
    assert schema.field("power_w").type == pa.float64()
    assert schema.field("gpu_uuid").type == pa.string()


def test_writing_takes_no_notice_of_pandas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reference = write(tmp_path / "a").read_bytes()
    for name in ("DataFrame", "Series"):
        monkeypatch.delattr(pd, name)
    assert write(tmp_path / "b").read_bytes() == reference
    assert b"pandas" not in reference


def test_a_manifest_that_was_changed_is_damage(tmp_path: Path) -> None:
    path = write(tmp_path)
    document = file.read_manifest(path)
    document["attempts"][0]["node"] = "n2"
    _rewrite(path, lambda table: table, document)
    with pytest.raises(Damaged, match="its manifest was changed"):
        file.read_manifest(path)
