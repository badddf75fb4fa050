"""Faults planted in a good dataset of a GPU: exactly the checks that are right to fire name each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from opatlas.checks import evidence
from opatlas.checks.evidence import Evidence, OpRows
from opatlas.checks.finding import ADVISORY, BLOCKING, Finding
from opatlas.checks.run import run
from opatlas.planning.dataset import load

REPOSITORY = Path(__file__).parents[3]
TABLE = "gemm_perf"
CUT = {
    "audit_share": 0,
    "subset": "few",
    "ops": "gemm",
    "cases": "n=1024|5120,k=5120|8192",
    "shard_minutes": 0.2,
}
POWER_LIMIT_W = 700.0
Plant = Callable[[Evidence], Evidence]


def control(case: str, latency: float) -> dict[str, Any]:
    rows = [{"latency": latency, "latency_ci": 0.0}]
    return {"case": case, "attempt": "a1", "order": 1, "when": "first", "rows": rows}


@pytest.fixture(scope="module")
def good(merged_lab: Any, tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """Latencies are what the work takes at 70 % of the ceilings, and 3 us."""
    planned = load(REPOSITORY, "torch/2.11.0/sm90@few", CUT)
    lab = replace(merged_lab, root=tmp_path_factory.mktemp("gpu"), planned=planned)
    (op,) = planned.plan.ops
    work = evidence.work_ms(op.work, op.columns["dtype"], planned.dataset.platform.peaks)
    times = dict(zip(op.ids, (0.003 + work / 0.7).tolist(), strict=True))
    place = {"timing_method": "cuda_graph", "device": "NVIDIA H200", "gpu_uuid": "GPU-1", "power_w": 500.0}
    spread = {"latency_mad": 1e-5, "latency_ci": 1e-5}
    heavy = max(times, key=lambda case: times[case])
    lab.write(
        change=lambda rows: (
            [{**row, **place, **spread, "latency": times[row["case_id"]]} for row in rows],
            [],
        ),
        attempts=[
            {
                "id": "a1",
                "node": "node1",
                "started": "2026-05-01T10:00:00+00:00",
                "versions": {"framework": "2.11.0+cu128"},
                "facts": {"device": "NVIDIA H200", "uuid": "GPU-1", "power_limit_w": POWER_LIMIT_W},
            }
        ],
        controls=[control(heavy, times[heavy])],
    )
    lab.merge()
    return evidence.load(lab.planned, lab.folder)


def found(planted: Evidence) -> list[Finding]:
    return list(run(planted, "results/it").findings)


def own(good: Evidence) -> OpRows:
    (only,) = good.ops
    return only


def where(good: Evidence, **fields: Any) -> np.ndarray:
    """The rows whose case has these fields."""
    rows = own(good)
    return np.all([rows.op.columns[name][rows.place] == value for name, value in fields.items()], axis=0)


def with_latency(good: Evidence, chosen: np.ndarray, latency: Any) -> Evidence:
    table = good.tables[TABLE]
    values = table["latency"].to_numpy().copy()
    values[chosen] = latency
    return with_column(good, "latency", values)


def with_column(good: Evidence, name: str, values: Any) -> Evidence:
    table = good.tables[TABLE]
    field = table.schema.field(name)
    changed = table.set_column(table.column_names.index(name), field, pa.array(values, field.type))
    return replace(good, tables={**good.tables, TABLE: changed})


def with_first(good: Evidence, name: str, value: Any) -> Evidence:
    return with_column(good, name, [value, *good.tables[TABLE][name].to_pylist()[1:]])


def without(good: Evidence, chosen: np.ndarray) -> Evidence:
    return replace(good, tables={TABLE: good.tables[TABLE].filter(pa.array(~chosen))})


def dropped_row(good: Evidence) -> Evidence:
    (row,) = np.flatnonzero(where(good, dtype="fp8", n=1024, k=8192, m=256))
    return without(good, np.arange(good.tables[TABLE].num_rows) == row)


def dropped_token_column(good: Evidence) -> Evidence:
    return without(good, where(good, m=256))


def doubled_key(good: Evidence) -> Evidence:
    table = good.tables[TABLE]
    return replace(good, tables={TABLE: pa.concat_tables([table, table.slice(0, 1)])})


def wrong_unit(good: Evidence) -> Evidence:
    table = good.tables[TABLE]
    shard = pc.equal(table["shard"], table["shard"][0]).to_numpy()
    return with_latency(good, shard, table["latency"].to_numpy()[shard] * 1000)


def not_a_number(good: Evidence) -> Evidence:
    return with_first(good, "latency", float("nan"))


def faster_than_light(good: Evidence) -> Evidence:
    rows = own(good)
    last = where(good, dtype="bfloat16", n=5120, k=8192, m=int(rows.op.columns["m"].max()))
    return with_latency(good, last, rows.least_ms[last] * 0.9)


def mislabelled_dtype(good: Evidence) -> Evidence:
    """What is labelled fp8 in one build ran in bfloat16."""
    labelled, ran = (where(good, dtype=dtype, n=5120, k=8192) for dtype in ("fp8", "bfloat16"))
    return with_latency(good, labelled, good.tables[TABLE]["latency"].to_numpy()[ran] * 1.01)


def host_bound_row(good: Evidence) -> Evidence:
    return with_first(good, "timing_method", "cpu_perf_counter")


def host_bound_floor(good: Evidence) -> Evidence:
    chosen = where(good, dtype="fp8")
    latency = good.tables[TABLE]["latency"].to_numpy()[chosen]
    return with_latency(good, chosen, np.maximum(latency, 0.0595))


def fewer_tokens_slower(good: Evidence) -> Evidence:
    chosen = where(good, dtype="bfloat16", n=5120, k=8192, m=256)
    return with_latency(good, chosen, good.tables[TABLE]["latency"].to_numpy()[chosen] * 2)


def power_of_zero(good: Evidence) -> Evidence:
    return with_first(good, "power_w", 0.0)


def power_above_the_limit(good: Evidence) -> Evidence:
    return with_first(good, "power_w", POWER_LIMIT_W * 1.05)


def power_limit_of_zero(good: Evidence) -> Evidence:
    return with_attempt(good, power_limit_w=0.0)


def with_attempt(good: Evidence, **facts: Any) -> Evidence:
    attempt = good.record["attempts"]["a1"]
    attempts = {"a1": {**attempt, "facts": {**attempt["facts"], **facts}}}
    return replace(good, record={**good.record, "attempts": attempts})


def shard_of_another_plan(good: Evidence) -> Evidence:
    return with_first(good, "shard", f"s01-{'0' * 16}")


def merged_without_a_shard(good: Evidence) -> Evidence:
    return replace(good, record={**good.record, "shards": good.record["shards"][1:]})


def unknown_attempt(good: Evidence) -> Evidence:
    return with_first(good, "attempt", "nobody's")


def size_beyond_32_bit(good: Evidence) -> Evidence:
    return with_first(good, "m", 2**32)


def another_rows_label(good: Evidence) -> Evidence:
    return with_first(good, "gemm_dtype", "fp8")


def with_controls(good: Evidence, factor: float) -> Evidence:
    """Control cases whose times are those of the good ones times a factor, in every shard alike."""
    shards = [
        {
            **shard,
            "controls": [control(c["case"], c["rows"][0]["latency"] * factor) for c in shard["controls"]],
        }
        for shard in good.record["shards"]
    ]
    return replace(good, record={**good.record, "shards": shards})


def beaten_ceiling(good: Evidence) -> Evidence:
    return with_controls(good, 0.6)


def unreached_ceiling(good: Evidence) -> Evidence:
    return with_controls(good, 3.0)


FAULTS: dict[Plant, list[tuple[str, str]]] = {
    dropped_row: [("completeness", BLOCKING), ("ragged", ADVISORY)],
    dropped_token_column: [("completeness", BLOCKING), ("ragged", ADVISORY)],
    doubled_key: [("completeness", BLOCKING), ("keys", BLOCKING)],
    wrong_unit: [("units", BLOCKING)],
    not_a_number: [("values", BLOCKING)],
    faster_than_light: [("roofline", BLOCKING)],
    mislabelled_dtype: [("dtypes", ADVISORY)],
    host_bound_row: [("timing", BLOCKING)],
    host_bound_floor: [("plateau", ADVISORY)],
    fewer_tokens_slower: [("monotone", ADVISORY)],
    power_of_zero: [("values", BLOCKING)],
    power_above_the_limit: [("power", ADVISORY)],
    power_limit_of_zero: [("power", BLOCKING)],
    shard_of_another_plan: [("origin", BLOCKING)],
    merged_without_a_shard: [("origin", BLOCKING)],
    unknown_attempt: [("origin", BLOCKING)],
    # What cannot be is no size of a case either.
    size_beyond_32_bit: [("labels", BLOCKING), ("values", BLOCKING)],
    # It takes the name of another row, and its key.
    another_rows_label: [("keys", BLOCKING), ("labels", BLOCKING)],
    beaten_ceiling: [("ceilings", ADVISORY)],
    unreached_ceiling: [("ceilings", ADVISORY)],
}


def test_the_good_dataset_has_no_finding(good: Evidence) -> None:
    assert found(good) == []


@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_a_fault_is_named_by_these_checks_and_no_other(good: Evidence, plant: Plant) -> None:
    findings = found(plant(good))
    assert [(finding.check, finding.severity) for finding in findings] == FAULTS[plant], findings
    for finding in findings:
        assert finding.count >= 1
        assert finding.message
        assert finding.advice


def one(good: Evidence, plant: Plant, check: str) -> Finding:
    (finding,) = (finding for finding in found(plant(good)) if finding.check == check)
    return finding


def test_a_lost_token_column_is_printed_as_the_hole_it_is(good: Evidence) -> None:
    """FIELD P7: the dataset is not published, and the hole is told by axis and value."""
    report = run(dropped_token_column(good), "results/it")
    assert report.blocking
    assert "m=256 is missing on 12 curves" in report.text()
    finding = one(good, dropped_token_column, "ragged")
    assert finding.examples[0] == "m=256 is missing on 12 curves"
    assert finding.count == 12
    assert "interpolate across" in finding.message


def test_points_at_the_end_of_a_curve_are_told_apart_from_holes(good: Evidence) -> None:
    last = int(own(good).op.columns["m"].max())
    finding = one(good, lambda good: without(good, where(good, m=last)), "ragged")
    assert "extrapolate" in finding.message


def test_a_wrong_label_names_both_precisions_and_the_rows(good: Evidence) -> None:
    """FIELD M9: the time of what ran under another name gives it away."""
    finding = one(good, mislabelled_dtype, "dtypes")
    assert finding.selector == "kinds=bfloat16 and fp8"
    assert "n=5120/k=8192" in finding.examples[0]


def test_a_power_reading_is_null_or_possible(good: Evidence) -> None:
    """FIELD M15: null passes, zero fails, more than the limit is flagged."""
    rows = good.tables[TABLE].num_rows
    assert found(with_attempt(with_column(good, "power_w", [None] * rows), power_limit_w=None)) == []
    assert one(good, power_of_zero, "values").selector == "power_w"
    assert one(good, power_above_the_limit, "power").count == 1


def test_a_ceiling_is_named_by_its_key(good: Evidence) -> None:
    assert one(good, beaten_ceiling, "ceilings").selector == "key=sm90.peaks.tflops.float32"
    assert "no control case comes near" in one(good, unreached_ceiling, "ceilings").message


def test_a_unit_is_suspected_beside_the_other_shards(good: Evidence) -> None:
    """FIELD D8: one shard a thousand times slower than its neighbours."""
    finding = one(good, wrong_unit, "units")
    assert finding.selector == f"shard={good.tables[TABLE]['shard'][0].as_py()}"


def test_a_fall_along_an_axis_shows_both_times(good: Evidence) -> None:
    finding = one(good, fewer_tokens_slower, "monotone")
    assert finding.selector == "m"
    assert finding.examples[0].startswith("gemm/dtype=bfloat16/m=256/n=5120/k=8192: ")
