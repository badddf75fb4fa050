from __future__ import annotations

import random
from typing import Any

import pyarrow.parquet as pq
import pytest
from opatlas.audit import trace
from opatlas.errors import UserError

NAME = "torch/2.13.0/cpu"
KEYS = {
    "gemm_perf": ["gemm_dtype", "m", "n", "k"],
    "moe_perf": ["num_tokens", "hidden_size", "moe_tp_size", "moe_ep_size", "distribution"],
}


@pytest.mark.parametrize("table", KEYS)
def test_any_row_leads_to_its_job(published: Any, table: str) -> None:
    rows = pq.read_table(published.root / "results" / NAME / f"{table}.parquet").to_pylist()
    row = random.Random(4).choice(rows)
    wanted = {column: str(row[column]) for column in KEYS[table]}
    (found,) = trace.trace(published.root, NAME, table, wanted)
    op = row["case_id"].partition("/")[0]
    assert found.row == row
    assert found.shard["path"] == f"results/shards/{NAME}/{op}/{row['shard']}.parquet"
    assert found.attempt["id"] == row["attempt"] == f"a-{op}"
    assert (found.attempt["node"], found.attempt["job_id"]) == (row["node"], row["job_id"])
    assert found.attempt["facts"]["uuid"] == row["gpu_uuid"] == f"GPU-{op}"
    assert (found.attempt["log"], found.log) == (f"results/attempts/{op}.log", "as recorded")
    assert found.details == {"kernels": "mkl, copy", "notes": {}}
    text = trace.text([found])
    for part in (row["case_id"], found.shard["path"], f"GPU-{op}", row["node"], "2.13.0+cpu", "as recorded"):
        assert part in text


def test_a_failure_leads_to_its_job_too(published: Any) -> None:
    (found,) = trace.trace(published.root, NAME, "failures", {"class": "unsupported"})
    assert found.attempt["id"] == "a-gemm"
    assert "unsupported: no kernel" in found.text()


def test_evidence_that_is_gone_or_changed_is_said(published: Any) -> None:
    shard = published.shards("moe")[0]
    (published.root / shard.path).unlink()
    (published.root / "results/attempts/moe.log").unlink()
    (published.root / "results/attempts/gemm.log").write_text("other")
    moe = trace.trace(published.root, NAME, "moe_perf", {})
    assert {(found.log, found.details["file"]) for found in moe} == {("gone", "is missing")}
    assert {found.log for found in trace.trace(published.root, NAME, "gemm_perf", {})} == {"changed since"}
    assert trace.text(moe).splitlines()[-1] == f"and {len(moe) - trace.SHOWN} more; name more columns"


def test_a_row_that_was_measured_again_since_is_said(published: Any) -> None:
    published.write(published.shards("moe"), lambda rows: ([{**row, "latency": 9.0} for row in rows], []))
    (found, *_) = trace.trace(published.root, NAME, "moe_perf", {})
    assert found.details == {"file": "holds another row now"}


@pytest.mark.parametrize(
    ("table", "wanted", "message"),
    [
        ("gem_perf", {}, "has no table 'gem_perf'; there are context_attention_perf"),
        ("gemm_perf", {"M": "1"}, "has no column 'M'; there are framework, version"),
        ("gemm_perf", {"m": "one"}, "m is of type int64, found 'one'"),
        (
            "gemm_perf",
            {"gemm_dtype": "fp4"},
            "no such row has gemm_dtype=fp4; gemm_dtype is one of bfloat16, float32",
        ),
        ("gemm_perf", {"m": "3"}, "no such row has m=3; m is one of 1, 8, 64, 256"),
    ],
)
def test_what_cannot_be_traced_is_explained(
    published: Any, table: str, wanted: dict[str, str], message: str
) -> None:
    with pytest.raises(UserError) as error:
        trace.trace(published.root, NAME, table, wanted)
    assert message in str(error.value)
