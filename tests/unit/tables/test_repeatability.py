"""The audit sample: how far two measurements of a case are apart."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from opatlas.config import datasets
from opatlas.planning.dataset import load
from opatlas.planning.repeats import GENERATION, drawn
from opatlas.tables import repeatability as module
from opatlas.tables.repeatability import repeatability

ROOT = Path(__file__).parents[3]


def measured(latencies: dict[str, float]) -> Any:
    rows = [{"case_id": case, "part": "", "latency": latency} for case, latency in latencies.items()]
    schema = pa.schema([("case_id", "string"), ("part", "string"), ("latency", "double")])
    return SimpleNamespace(rows=pa.Table.from_pylist(rows, schema))


def test_quantiles_and_what_stands_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of 50 sampled cases at three times their first value: exactly those are named."""
    first = {f"c{number}": 1.0 for number in range(60)}
    second = {f"c{number}": 3.0 if number in (7, 31) else 1.01 for number in range(50)}
    shard = SimpleNamespace(op="gemm", ids=tuple(second), path=Path("r.parquet"))
    monkeypatch.setattr(module.sources, "read", lambda root, wanted: measured(second))
    found = repeatability(ROOT, SimpleNamespace(repeats=[shard]), {"gemm": [measured(first)]})["gemm"]  # type: ignore[arg-type]
    assert (found["sampled"], found["compared"]) == (50, 50)
    assert found["p50"] == pytest.approx(0.01)
    assert found["largest"] == pytest.approx(2.0)
    assert [entry["case"] for entry in found["notable"]] == ["c31", "c7"]


def test_a_case_that_failed_once_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    shard = SimpleNamespace(op="gemm", ids=("a", "b"), path=Path("r.parquet"))
    monkeypatch.setattr(module.sources, "read", lambda root, wanted: measured({"a": 1.0}))
    found = repeatability(ROOT, SimpleNamespace(repeats=[shard]), {"gemm": [measured({"b": 1.0})]})["gemm"]  # type: ignore[arg-type]
    assert (found["sampled"], found["compared"], found["p95"]) == (2, 0, None)


def test_about_the_asked_share_is_drawn_and_others_do_not_matter() -> None:
    planned = load(ROOT, "torch/2.11.0/sm90", {"audit_share": 0.01})
    cases = sum(len(shard.ids) for shard in planned.shards)
    sampled = [case_id for shard in planned.repeats for case_id in shard.ids]
    assert 0.008 < len(sampled) / cases < 0.012
    assert all(drawn(case_id, planned.config.settings) for case_id in sampled)


def test_a_repeat_is_never_taken_for_the_row_and_is_held_until_it_settles() -> None:
    planned = load(ROOT, "torch/2.11.0/sm90", {"audit_share": 0.01})
    for shard in planned.repeats:
        assert {key.generation for key in shard.keys} == {GENERATION}
        assert shard.context.parts["measure"]["sustained"] is True
    on_cpu = load(ROOT, "torch/2.13.0/cpu", {"audit_share": 0.2})
    assert {shard.context.parts["measure"]["sustained"] for shard in on_cpu.repeats} == {False}


def test_a_share_is_a_share() -> None:
    with pytest.raises(Exception, match="audit_share"):
        datasets.load(ROOT, {"audit_share": 1.5})
