"""What every room must have, and the work of ops where it can be counted by hand."""

from __future__ import annotations

import importlib
import inspect
from functools import cache
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest
from opatlas.catalogue import load as catalogue
from opatlas.ops.spec import load_op, op_names
from opatlas.planning.rows import Rows

REPOSITORY = Path(__file__).parents[3]


@cache
def cases():
    return catalogue.load(REPOSITORY)


def some_rows(name: str) -> Rows:
    """What anyone wants of an op, in the precisions of the first backend that declares it."""
    op = load_op(name)
    declared = next(by_op[name] for by_op in cases().precisions.values() if name in by_op)
    return Rows.of(op, list(op.expand(cases().grids[name], cases().models, declared)))


@pytest.mark.parametrize("name", op_names())
def test_a_room_is_whole(name):
    op = load_op(name)
    assert op.name == name
    assert set(op.build) | {op.dtype} <= set(op.fields)
    assert set(op.precision) <= set(op.fields)
    assert set(get_type_hints(op.case).values()) <= {str, int}
    assert all(default == "" for default in op.case._field_defaults.values())
    assert importlib.import_module(f"opatlas.ops.{name}.case").Case is op.case
    assert inspect.getdoc(op.case)
    assert importlib.import_module(f"opatlas.ops.{name}").__doc__.startswith(f"{name}: ")
    names = [column.name for column in op.table.columns]
    assert len(set(names)) == len(names)
    assert set(op.table.key) <= {*names, "kernel_source", "op_name"}
    assert {column.type for column in op.table.columns} <= {"string", "int64"}
    assert op.rows != 1 or not any(column.values is None for column in op.table.columns)
    assert any(name in by_op for by_op in cases().precisions.values())


@pytest.mark.parametrize("name", op_names())
def test_columns_and_work_of_an_op(name):
    op = load_op(name)
    rows = some_rows(name)
    assert len(rows) > 0
    columns = rows.columns()
    for column in op.table.columns:
        if column.values:
            values = column.values(columns)
            assert len(values) == len(rows)
            assert column.type == "string" or np.issubdtype(values.dtype, np.integer)
            assert column.type == "string" or values.min() >= 0
    work = op.work(columns)
    for amount in (work.flops, work.weight_bytes, work.kv_bytes, work.activation_bytes):
        assert amount.shape == (len(rows),)
        assert np.isfinite(amount).all()
        assert (amount >= 0).all()
    assert (work.flops + work.moved_bytes + work.activation_bytes > 0).all()


@pytest.mark.parametrize("name", op_names())
def test_work_grows_with_tokens(name):
    """More tokens, a larger batch or a longer cache never take less."""
    op = load_op(name)
    axis = next(
        field
        for field in ("tokens", "m", "elements", "batch")
        if field in op.fields and len(some_rows(name).values[op.fields.index(field)]) > 1
    )
    rows = some_rows(name)
    codes = dict(zip(op.fields, rows.codes, strict=True))
    order = np.lexsort([codes[axis], *(codes[field] for field in op.fields if field != axis)])
    ordered = rows.take(order)
    work = op.work(ordered.columns())
    same = np.ones(len(rows) - 1, np.bool_)
    for field, column in zip(op.fields, ordered.codes, strict=True):
        if field != axis:
            same &= np.diff(column) == 0
    for amount in (work.flops, work.moved_bytes, work.activation_bytes):
        assert (np.diff(amount)[same] >= 0).all()


def work_of(name: str, *case: object):
    op = load_op(name)
    columns = {field: np.array([value], object if isinstance(value, str) else None)
               for field, value in zip(op.fields, op.case(*case), strict=True)}  # fmt: skip
    work = op.work(columns)
    return tuple(
        float(amount[0]) for amount in (work.flops, work.weight_bytes, work.kv_bytes, work.activation_bytes)
    )


def test_work_by_hand():
    assert work_of("gemm", "fp8", 2, 3, 5) == (60, 15, 0, 10 + 12)
    flops, weights, kv, _ = work_of("attention_generation", "bfloat16", "fp8", 8, 2, 64, 0, 4, 100)
    assert (flops, weights, kv) == (4 * 4 * 100 * 8 * 64, 0, 2 * 4 * 100 * 2 * 64)
    # A window of 10 bounds what each of 16 tokens sees: 1 + ... + 10, then 10 for the other 6.
    assert work_of("attention_context", "bfloat16", "bfloat16", 1, 1, 64, 10, 1, 16)[0] == 4 * (55 + 60) * 64
    # One token touches topk experts of three matrices; four ranks share them.
    flops, weights, *_ = work_of("moe", "bfloat16", 1024, 512, 8, 64, 1, 4, "balanced", 1)
    assert (flops, weights) == (2 * 2 * 3 * 1024 * 512, 2 * 2 * 3 * 1024 * 512)
    assert work_of("mla_bmm_gen_pre", "bfloat16", 16, 4)[:2] == (2 * 16 * 4 * 128 * 512, 2 * 16 * 128 * 512)
    kv = work_of("mla_generation", "bfloat16", "fp8", 16, 2, 1000)[2]
    assert kv == 2 * 1000 * 576


def test_sparse_attention_reads_no_more_than_its_choice():
    named = ("m", "a", "bfloat16", "bfloat16", "bfloat16", 7168, 16, 8)
    near, far = (work_of("dsa_generation_module", *named, 1, kv_len) for kv_len in (4096, 131072))
    assert far[0] == near[0]
    index = 128 * (131072 - 4096)
    assert far[2] - near[2] == index
    skipping = work_of("dsa_generation_module_skip_indexer", *named, 1, 131072)
    assert skipping[2] == 2048 * 576 * 2
