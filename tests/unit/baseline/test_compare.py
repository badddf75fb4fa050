"""A dataset against a baseline: answers, surroundings, failures, coverage, and tables of others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opatlas.baseline import answers, report, side
from opatlas.baseline.answers import DIFFERENT, SAME, UNKNOWN, Ratios
from opatlas.baseline.compare import Comparison, compare
from opatlas.baseline.findings import findings
from opatlas.errors import UserError

Row = dict[str, Any]


def gemms(factor: float = 1.0, count: int = 200, noise: float = 0.0, **values: Any) -> list[Row]:
    """Rows of gemm_perf; `noise` is half the range of a relative error, the same at every call."""
    error = np.random.default_rng(7).uniform(-noise, noise, count)
    latency = np.geomspace(0.002, 20, count) * factor * (1 + error)
    return [
        {
            "device": "NVIDIA H200",
            "op_name": "gemm",
            "kernel_source": "cublas",
            "gemm_dtype": "fp8" if index % 2 else "bfloat16",
            "m": index,
            "n": 4096,
            "k": 4096,
            "latency": float(latency[index]),
            "latency_ci": float(latency[index]) * 0.002,
            "timing_method": "cuda_graph",
            "case_id": f"gemm/m={index}",
            **values,
        }
        for index in range(count)
    ]


def moes(factor: float = 1.0, count: int = 60, **values: Any) -> list[Row]:
    return [
        {
            "op_name": "moe",
            "kernel_source": "triton",
            "moe_dtype": "fp8",
            "distribution": "balanced",
            "topk": 2,
            "num_experts": 8,
            "hidden_size": 256,
            "inter_size": 128,
            "moe_tp_size": 1,
            "moe_ep_size": 1,
            "num_tokens": 2**index % 99991,
            "latency": 0.1 * (index + 1) * factor,
            "latency_ci": 0.0001 * (index + 1) * factor,
            **values,
        }
        for index in range(count)
    ]


def write(folder: Path, provenance: Row | None = None, **tables: Sequence[Row] | pa.Table) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in tables.items():
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(list(rows))
        pq.write_table(table, folder / f"{name}.parquet")
    if provenance is not None:
        (folder / "provenance.json").write_text(json.dumps(provenance), encoding="utf-8")
    return folder


def compared(root: Path, new: Row, old: Row) -> Comparison:
    """Compares two folders with these tables (and, under `provenance`, what they say of themselves)."""
    sides = [write(root / name, **tables) for name, tables in (("new", new), ("old", old))]
    return compare(*(side.find(root, str(folder)) for folder in sides))


def found(comparison: Comparison) -> list[str]:
    return [finding.message for finding in findings(comparison)]


def answer_of(comparison: Comparison, op: str, dtype: str) -> str:
    return next(e["answer"] for e in comparison.ops if (e["op"], e["dtype"]) == (op, dtype))


def test_equal_tables_are_the_same_and_nothing_needs_a_look(tmp_path: Path) -> None:
    comparison = compared(tmp_path, {"gemm_perf": gemms()}, {"gemm_perf": gemms()})
    assert comparison.answer == SAME
    assert found(comparison) == []
    assert {entry["p50"] for entry in comparison.groups} == {1.0}


def test_r3_noise_is_the_same_an_ops_drift_is_different_and_a_slow_run_is_suspect(tmp_path: Path) -> None:
    """FIELD R3: three fixtures, three verdicts."""
    old = {"gemm_perf": gemms(), "moe_perf": moes()}
    same = compared(tmp_path / "a", {"gemm_perf": gemms(1.005, noise=0.01), "moe_perf": moes()}, old)
    assert same.answer == SAME
    assert found(same) == []
    drift = compared(tmp_path / "b", {"gemm_perf": gemms(), "moe_perf": moes(1.2)}, old)
    assert (answer_of(drift, "gemm", "fp8"), answer_of(drift, "moe", "fp8")) == (SAME, DIFFERENT)
    assert [message.partition(":")[0] for message in found(drift)] == ["moe fp8"]
    suspect = compared(tmp_path / "c", {"gemm_perf": gemms(1.5), "moe_perf": moes(1.5)}, old)
    assert suspect.answer == DIFFERENT
    assert "the run is suspect" in found(suspect)[0]


def test_r2_another_kernel_is_said_before_any_ratio(tmp_path: Path) -> None:
    """FIELD R2: two runs that differ in their attention backend."""
    new = {"gemm_perf": gemms(1.3, kernel_source="deepgemm"), "provenance": run("560.35")}
    comparison = compared(tmp_path, new, {"gemm_perf": gemms(), "provenance": run("550.90")})
    assert comparison.environment == [
        "kernel_source of gemm_perf: cublas -> deepgemm",
        "driver: 550.90 -> 560.35",
    ]
    assert "cublas -> deepgemm" in report.text(comparison).splitlines()[1]
    page = report.page(comparison)
    assert page.index("cublas -&gt; deepgemm") < page.index("<h2>")


def run(driver: str, **repeatability: float) -> Row:
    attempt = {"versions": {"framework": "0.24.0"}, "facts": {"driver": driver, "uuid": driver}}
    return {
        "attempts": {"a": attempt},
        "ops": {"gemm": {"image": "it@sha256:1"}},
        "measure": {"budget_s": 2},
        "repeatability": {op: {"p95": value} for op, value in repeatability.items()},
    }


@pytest.mark.parametrize(
    ("factor", "ci", "answer"),
    [
        (1.0, 0.001, SAME),
        (1.02, 0.05, UNKNOWN),
        (1.1, 0.2, UNKNOWN),
        (1.1, 0.01, DIFFERENT),
        (0.9, 0.01, DIFFERENT),
    ],
)
def test_the_spreads_of_both_sides_decide(tmp_path: Path, factor: float, ci: float, answer: str) -> None:
    rows = [{**row, "latency_ci": row["latency"] * ci} for row in gemms(factor)]
    comparison = compared(tmp_path, {"gemm_perf": rows}, {"gemm_perf": gemms()})
    assert comparison.answer == answer
    assert {entry["answer"] for entry in comparison.largest} == {answer}


def test_the_audit_samples_repeatability_counts_as_spread(tmp_path: Path) -> None:
    new = {"gemm_perf": gemms(1.05), "provenance": run("1", gemm=0.08)}
    comparison = compared(tmp_path, new, {"gemm_perf": gemms(), "provenance": run("1", gemm=0.01)})
    assert comparison.answer == UNKNOWN
    assert compared(tmp_path / "more", {"gemm_perf": gemms(1.05)}, {"gemm_perf": gemms()}).answer == DIFFERENT


def test_a_changed_tail_is_not_the_same_though_the_median_is(tmp_path: Path) -> None:
    rows = [{**row, "latency": row["latency"] * (2 if row["m"] % 10 < 2 else 1)} for row in gemms()]
    assert compared(tmp_path, {"gemm_perf": rows}, {"gemm_perf": gemms()}).answer == DIFFERENT


def test_groups_are_by_precision_and_size(tmp_path: Path) -> None:
    comparison = compared(tmp_path, {"gemm_perf": gemms()}, {"gemm_perf": gemms()})
    sizes = ["under 10 us", "10 to 100 us", "0.1 to 1 ms", "1 to 10 ms", "over 10 ms"]
    for dtype in ("bfloat16", "fp8"):
        groups = [entry for entry in comparison.groups if entry["dtype"] == dtype]
        assert [entry["size"] for entry in groups] == sizes
        assert sum(entry["rows"] for entry in groups) == 100


def test_only_small_calls_changed(tmp_path: Path) -> None:
    rows = [{**row, "latency": row["latency"] * (1.4 if row["latency"] < 0.01 else 1)} for row in gemms()]
    comparison = compared(tmp_path, {"gemm_perf": rows}, {"gemm_perf": gemms()})
    differing = {entry["size"] for entry in comparison.groups if entry["answer"] == DIFFERENT}
    assert "under 10 us" in differing
    assert differing <= {"under 10 us", "10 to 100 us"}


def test_the_fifty_largest_changes_come_first(tmp_path: Path) -> None:
    rows = gemms(count=300)
    for index, row in enumerate(rows):
        row["latency"] *= 1 + index / 100
    largest = compared(tmp_path, {"gemm_perf": rows}, {"gemm_perf": gemms(count=300)}).largest
    assert [entry["key"]["m"] for entry in largest] == list(range(299, 249, -1))
    assert largest[0]["ratio"] == pytest.approx(3.99)
    assert largest[0]["case_id"] == "gemm/m=299"


def public(rows: Sequence[Row]) -> pa.Table:
    """Rows as a foreign collector writes them: no spread, no ids, other kinds of text, another order."""
    names = ("framework", "kernel_source", "gemm_dtype", "m", "k", "n", "latency")
    table = pa.Table.from_pylist([{"framework": "VLLM", **{n: r[n] for n in names[1:]}} for r in rows][::-1])
    large = [pa.large_string() if pa.types.is_string(field.type) else field.type for field in table.schema]
    return table.cast(pa.schema(list(zip(table.column_names, large, strict=True))))


@pytest.mark.parametrize(
    ("factor", "noise", "answer"), [(1.0, 0.01, SAME), (1.3, 0.05, DIFFERENT), (1.03, 0.2, UNKNOWN)]
)
def test_a_public_table_is_judged_by_the_scatter_of_the_ratios(
    tmp_path: Path, factor: float, noise: float, answer: str
) -> None:
    comparison = compared(tmp_path, {"gemm_perf": gemms(factor, noise=noise)}, {"gemm_perf": public(gemms())})
    assert {entry["answer"] for entry in comparison.ops} == {answer}
    assert {entry["spread"] for entry in comparison.ops} == {"scatter"}
    assert {entry["answer"] for entry in comparison.largest} == {UNKNOWN}
    assert comparison.failures == {"compared": False, "new": [], "gone": []}


def test_repeated_keys_are_read_as_consumers_do_and_counted(tmp_path: Path) -> None:
    old = [*gemms(), *gemms(9.0, count=3)]
    comparison = compared(tmp_path, {"gemm_perf": gemms()}, {"gemm_perf": old})
    assert comparison.answer == SAME
    assert comparison.notes == [f"gemm_perf: 3 rows of {tmp_path / 'old'} repeat the key of an earlier row"]


def test_several_kernels_of_one_shape_are_told_apart(tmp_path: Path) -> None:
    both = [*moes(), *moes(4.0, kernel_source="cutlass")]
    comparison = compared(tmp_path, {"moe_perf": both[::-1]}, {"moe_perf": both})
    assert comparison.answer == SAME
    assert comparison.ops[0]["rows"] == 120
    assert "kernel_source" in comparison.largest[0]["key"]


def attention(**values: Any) -> list[Row]:
    row = {
        "kernel_source": "fa3",
        "attn_dtype": "bfloat16",
        "kv_cache_dtype": "fp8",
        "num_key_value_heads": 8,
        "head_dim": 128,
        "num_heads": 32,
        "batch_size": 1,
    }
    return [{**row, "isl": 2**i, "latency": 0.1 * 2**i, "latency_ci": 1e-4, **values} for i in range(12)]


def test_a_missing_window_is_no_window(tmp_path: Path) -> None:
    new = {"context_attention_perf": attention(window_size=0)}
    comparison = compared(tmp_path, new, {"context_attention_perf": attention()})
    assert (comparison.ops[0]["rows"], comparison.ops[0]["dtype"]) == (12, "bfloat16/fp8")
    windowed = {"context_attention_perf": attention(window_size=128)}
    other = compared(tmp_path / "w", windowed, {"context_attention_perf": attention()})
    assert other.ops == []
    assert other.coverage[0]["lost"] == 12


def test_ops_that_share_a_table_stay_apart(tmp_path: Path) -> None:
    def bmm(op_name: str, factor: float) -> list[Row]:
        return [
            {
                "op_name": op_name,
                "kernel_source": "default",
                "bmm_dtype": "fp8",
                "num_heads": 8,
                "num_tokens": number,
                "latency": factor * number,
                "latency_ci": 1e-6,
            }
            for number in range(1, 30)
        ]

    new = [*bmm("mla_gen_pre", 1.0), *bmm("mla_gen_post", 2.0)]
    old = [*bmm("mla_gen_pre", 1.0), *bmm("mla_gen_post", 1.0)]
    comparison = compared(tmp_path, {"mla_bmm_perf": new}, {"mla_bmm_perf": old})
    assert answer_of(comparison, "mla_bmm_gen_pre", "fp8") == SAME
    assert answer_of(comparison, "mla_bmm_gen_post", "fp8") == DIFFERENT


def test_null_cells_of_a_key_are_equal_and_microseconds_are_read_as_such(tmp_path: Path) -> None:
    row = {
        "comm_backend": "deepep",
        "phase": "dispatch",
        "comm_dtype": "fp8",
        "ep_size": 8,
        "node_num": 1,
        "hidden_size": 7168,
        "topk": 8,
        "num_experts": 256,
        "sms": None,
    }
    rows = [{**row, "num_tokens": n, "latency": 50.0 + n, "latency_ci": 1e-6} for n in range(1, 10)]
    schema = pa.schema([(k, pa.int64() if k == "sms" else pa.scalar(v).type) for k, v in rows[0].items()])
    table = pa.Table.from_pylist(rows, schema=schema)
    comparison = compared(tmp_path, {"moe_a2a_perf": table}, {"moe_a2a_perf": table})
    assert [(entry["size"], entry["rows"]) for entry in comparison.groups] == [("10 to 100 us", 9)]


def test_coverage_gained_and_lost(tmp_path: Path) -> None:
    comparison = compared(tmp_path, {"gemm_perf": gemms()[10:]}, {"gemm_perf": gemms()[:-4]})
    by_dtype = {
        entry["dtype"]: (entry["gained"], entry["lost"], entry["both"]) for entry in comparison.coverage
    }
    assert by_dtype == {"bfloat16": (2, 5, 93), "fp8": (2, 5, 93)}
    assert all("has rows that this dataset lacks" in message for message in found(comparison))


def failures(*groups: tuple[str, str]) -> list[Row]:
    return [
        {"table": "gemm_perf", "op": "gemm", "group": group, "class": kind, "case_id": str(number)}
        for number, (group, kind) in enumerate(groups)
    ]


def test_new_and_gone_failure_groups(tmp_path: Path) -> None:
    new = failures(("A fp8", "hang"), ("A fp8", "hang"), ("B fp8", "unsupported"))
    old = failures(("B fp8", "unsupported"), ("C fp8", "out_of_memory"))
    comparison = compared(
        tmp_path, {"gemm_perf": gemms(), "failures": new}, {"gemm_perf": gemms(), "failures": old}
    )
    assert [(e["group"], e["class"], e["cases"]) for e in comparison.failures["new"]] == [
        ("A fp8", "hang", 2)
    ]
    assert [e["group"] for e in comparison.failures["gone"]] == ["C fp8"]
    assert found(comparison) == ["gemm: hang in the group A fp8 is new"]


def test_what_is_no_time_is_left_out_and_counted(tmp_path: Path) -> None:
    rows = gemms()
    for index, value in enumerate((0.0, -1.0, float("nan"), float("inf"))):
        rows[index]["latency"] = value
    comparison = compared(tmp_path, {"gemm_perf": rows}, {"gemm_perf": gemms()})
    assert sum(entry["rows"] for entry in comparison.ops) == 196
    assert comparison.notes == ["gemm_perf: of 4 pairs one latency is no positive number"]


def test_tables_that_cannot_be_compared_are_named(tmp_path: Path) -> None:
    new = {"gemm_perf": gemms(), "moe_perf": moes()}
    old = {
        "gemm_perf": [{k: v for k, v in row.items() if k != "n"} for row in gemms()],
        "mystery_perf": gemms(),
    }
    comparison = compared(tmp_path, new, old)
    assert comparison.answer == UNKNOWN
    assert [note.partition(":")[0] for note in comparison.notes] == ["gemm_perf", "moe_perf", "mystery_perf"]
    assert "has no column n" in comparison.notes[0]
    text = report.text(comparison)
    assert all(note in text for note in comparison.notes)


def test_text_in_a_number_column_is_named(tmp_path: Path) -> None:
    rows = [{**row, "latency": "fast"} for row in gemms()]
    comparison = compared(tmp_path, {"gemm_perf": gemms()}, {"gemm_perf": rows})
    assert "column latency" in comparison.notes[0]


def test_tables_spread_over_families_are_one_side(tmp_path: Path) -> None:
    for family, tables in (("gemm", {"gemm_perf": gemms()}), ("moe", {"moe_perf": moes()})):
        write(tmp_path / "data/h200_sxm" / family / "vllm/0.24.0", **tables)
    both = side.find(tmp_path, "data/h200_sxm/*/vllm/0.24.0")
    assert sorted(both.tables) == ["gemm_perf", "moe_perf"]
    assert side.find(Path(), f"{tmp_path}/data/*/*/vllm/0.24.0").tables.keys() == both.tables.keys()
    write(tmp_path / "data/h200_sxm/mla/vllm/0.24.0", gemm_perf=gemms())
    with pytest.raises(UserError, match="are one table"):
        side.find(tmp_path, "data/h200_sxm/*/vllm/0.24.0")


def test_a_baseline_that_is_missing_empty_or_broken_is_one_clear_message(tmp_path: Path) -> None:
    for asked in ("vllm/0.24.0/sm90", "", "no/*/such"):
        with pytest.raises(UserError, match="there is no such dataset or folder; expected"):
            side.find(tmp_path, asked)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="there is no table in"):
        side.find(tmp_path, "empty")
    folder = write(tmp_path / "broken", gemm_perf=gemms(), moe_perf=moes())
    for name in ("gemm_perf", "moe_perf"):
        path = folder / f"{name}.parquet"
        path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(
        UserError, match=r"gemm_perf\.parquet: cannot be read.*\n.*moe_perf\.parquet: cannot be"
    ):
        side.find(tmp_path, "broken")


def test_damage_inside_a_table_is_a_clear_message_too(tmp_path: Path) -> None:
    folder = write(tmp_path / "old", gemm_perf=gemms())
    path = folder / "gemm_perf.parquet"
    content = bytearray(path.read_bytes())
    content[4:400] = b"\xff" * 396
    path.write_bytes(bytes(content))
    new = write(tmp_path / "new", gemm_perf=gemms())
    with pytest.raises(UserError, match=r"gemm_perf\.parquet: cannot be read"):
        compare(side.find(tmp_path, str(new)), side.find(tmp_path, str(folder)))


@pytest.mark.parametrize("text", ["", "[]", "{", "\x00"])
def test_a_broken_provenance_is_a_clear_message(tmp_path: Path, text: str) -> None:
    folder = write(tmp_path / "old", gemm_perf=gemms())
    (folder / "provenance.json").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"provenance\.json"):
        compare(side.find(tmp_path, "old"), side.find(tmp_path, "old"))


def test_a_dataset_is_not_its_own_baseline(tmp_path: Path) -> None:
    folder = write(tmp_path / "old", gemm_perf=gemms())
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(UserError, match="is the dataset itself"):
        side.find(tmp_path, "old").refuse(tmp_path / "link")


def test_the_page_and_the_document_hold_everything_and_escape_it(tmp_path: Path) -> None:
    new = {"gemm_perf": gemms(1.5, kernel_source="<b>new</b>"), "failures": failures(("<i>", "hang"))}
    comparison = compared(tmp_path, new, {"gemm_perf": gemms()[:-1], "failures": failures()[:0] or EMPTY})
    page = report.page(comparison)
    assert "<b>new" not in page
    assert "&lt;i&gt;" in page
    document = json.loads(json.dumps(report.document(comparison), allow_nan=False))
    assert document["answer"] == DIFFERENT
    assert [finding["severity"] for finding in document["findings"]] == ["advisory"] * len(
        document["findings"]
    )


EMPTY = pa.table({name: pa.array([], pa.string()) for name in ("table", "op", "group", "class", "case_id")})

logs = st.lists(st.floats(-0.5, 0.5), min_size=1, max_size=60)


@given(logs, st.floats(0, 0.2))
def test_both_directions_give_the_same_answer(values: list[float], half: float) -> None:
    halves = np.full(len(values), half)
    forth, back = Ratios(np.array(values), halves), Ratios(-np.array(values), halves)
    assert answers.rows(forth).tolist() == answers.rows(back).tolist()
    one, other = (answers.group(ratios, answers.rows(ratios)) for ratios in (forth, back))
    assert one["answer"] == other["answer"]


@given(logs, st.floats(0, 0.1), st.floats(0, 0.1))
def test_more_spread_never_makes_an_answer_surer(values: list[float], half: float, more: float) -> None:
    narrow, wide = (Ratios(np.array(values), np.full(len(values), h)) for h in (half, half + more))
    unknown = answers.ANSWERS.index(UNKNOWN)
    for before, after in zip(answers.rows(narrow), answers.rows(wide), strict=True):
        assert after in (before, unknown)


@pytest.mark.parametrize("count", [1, 5, 6, 500, 501, 20_000])
def test_the_medians_interval_holds_the_median(count: int) -> None:
    log = np.random.default_rng(count).normal(0, 0.01, count)
    found = answers.group(Ratios(log, np.zeros(count)), np.zeros(count, np.int64))
    assert found["low"] <= found["p50"] <= found["high"]
    assert found["p0"] - 1e-6 <= found["low"] <= found["high"] <= found["p100"] + 1e-6
