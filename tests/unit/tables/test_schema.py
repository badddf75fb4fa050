from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from opatlas.ops.spec import load_op, op_names
from opatlas.tables.schema import FAILURES, FURTHER, PREFIX, Published, table_schema

DOC = Path(__file__).parents[3] / "docs" / "dataset.md"
PREFIX_NAMES = ["framework", "version", "device", "op_name", "kernel_source"]

# Columns that readers of these tables look up by name and type.
KNOWN = {
    "gemm": "gemm_dtype: string, m: int64, n: int64, k: int64, latency: double",
    "attention_context": (
        "batch_size: int64, isl: int64, num_heads: int64, num_key_value_heads: int64, head_dim: int64, "
        "beam_width: int64, attn_dtype: string, kv_cache_dtype: string, step: int64, window_size: int64, "
        "latency: double"
    ),
    "attention_generation": (
        "batch_size: int64, isl: int64, num_heads: int64, num_key_value_heads: int64, head_dim: int64, "
        "beam_width: int64, attn_dtype: string, kv_cache_dtype: string, step: int64, window_size: int64, "
        "latency: double"
    ),
    "moe": (
        "moe_dtype: string, num_tokens: int64, hidden_size: int64, inter_size: int64, topk: int64, "
        "num_experts: int64, moe_tp_size: int64, moe_ep_size: int64, distribution: string, latency: double"
    ),
}


def line(field: pa.Field) -> str:
    return f"{field.name}: {field.type}"


@pytest.mark.parametrize("op", KNOWN)
def test_tables_have_the_columns_that_consumers_read(op: str) -> None:
    fields = list(table_schema(load_op(op).table))
    assert [field.name for field in fields[:5]] == PREFIX_NAMES
    own = fields[5 : len(fields) - len(FURTHER)]
    assert ", ".join(map(line, own)) == KNOWN[op]
    assert own[-1].metadata == {b"unit": b"ms"}
    assert [field.name for field in fields[-len(FURTHER) :]] == [column.name for column in FURTHER]


@pytest.mark.parametrize("op", op_names())
def test_every_op_has_a_schema_whose_key_is_never_null(op: str) -> None:
    table = load_op(op).table
    schema = table_schema(table)
    assert len(set(schema.names)) == len(schema.names)
    assert not any(schema.field(name).nullable for name in table.key)


def test_a_table_may_start_at_its_own_columns_and_measure_several_times() -> None:
    table = replace(load_op("gemm").table, prefix=False, measured=(("send_us", "us"), ("receive_us", "us")))
    schema = table_schema(table)
    assert schema.names[:6] == ["gemm_dtype", "m", "n", "k", "send_us", "receive_us"]
    assert schema.field("send_us").metadata == {b"unit": b"us"}
    assert schema.field("send_us").nullable


def documented(heading: str) -> list[list[str]]:
    """The cells of the table under a heading of docs/dataset.md."""
    section = re.split(r"^#+ ", DOC.read_text(encoding="utf-8"), flags=re.MULTILINE)
    body = next(part for part in section if part.startswith(heading + "\n"))
    rows = [text.strip("|").split("|") for text in body.splitlines() if text.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def cells(column: Published) -> list[str]:
    null = "yes" if column.nullable else ""
    return [f"`{column.name}`", column.type, column.unit, null, column.meaning]


def test_the_documentation_lists_every_column_in_order() -> None:
    assert documented("Columns before an op's own") == list(map(cells, PREFIX))
    assert documented("Columns after the latency") == list(map(cells, FURTHER))
    assert documented("failures.parquet") == list(map(cells, FAILURES))
    own = [
        [
            f"`{op}`",
            f"`{load_op(op).table.name}`",
            ", ".join(f"`{c.name}`" for c in load_op(op).table.columns),
        ]
        for op in op_names()
    ]
    assert [row[:3] for row in documented("Tables")] == own
