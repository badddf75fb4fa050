"""What case files may say, and how a mistake in them is told: file, line, key, and what is right."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from opatlas.catalogue import load as catalogue
from opatlas.errors import UserError

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def root(tmp_path):
    shutil.copytree(REPOSITORY / "cases", tmp_path / "cases")
    return tmp_path


def mistakes(root, path, text):
    (root / path).write_text(text)
    with pytest.raises(UserError) as raised:
        catalogue.load(root)
    return str(raised.value)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ("attention: [{heads: 32, kv_heads: 8, head_dim: 128}]", r"attention\[0\].tp: is missing"),
        (
            "attention: [{heads: 32, kv_heads: 8, head_dim: 128, tp: [1, 3]}]",
            r"tp: 32 heads cannot be split over 3 ranks",
        ),
        (
            "attention: [{heads: 32, kv_heads: 5, head_dim: 128, tp: [1]}]",
            r"kv_heads: must divide the 32 query heads, found 5",
        ),
        (
            "attention: [{heads: MISSING, kv_heads: 5, head_dim: 128, tp: [1]}]",
            r"heads: expected a whole number, found text 'MISSING'",
        ),
        ("moe: [{hidden: 8, inter: 8, topk: 9, experts: 8}]", r"topk: a token cannot go to 9 of 8 experts"),
        (
            "moe: [{hidden: 8, inter: 8, topk: 1, experts: 8, dtypes: [fp5]}]",
            r"dtypes: there is no precision 'fp5'; known: float32",
        ),
        ("mla: [{heads: 8, kv_lora: 256, rope: 64, nope: 128, v: 128, tp: [1]}]", r"kv_lora: the mla tables"),
        ("mhc: [{hidden: 8, streams: 4, sinkhorn: 20, sites: [mid]}]", r"sites: there is no site 'mid'"),
        (
            "mamba2: [{d_model: 0, state: 1, conv: 1, heads: 1, head_dim: 1, groups: 1, chunk: 1}]",
            "at least 1",
        ),
        ("atention: []", r"new/Model.atention: is not a known key; did you mean attention\?"),
    ],
)
def test_a_mistake_in_a_model(root, facts, message):
    text = mistakes(root, "cases/models/new.yaml", f"new/Model:\n  architecture: NewForCausalLM\n  {facts}\n")
    assert re.search(r"cases/models/new.yaml(:\d+)?: new/Model", text)
    assert re.search(message, text)


def test_a_model_stands_once(root):
    text = mistakes(
        root,
        "cases/models/new.yaml",
        "new/Model:\n  architecture: A\n  also: [Qwen/Qwen3-32B]\n  gemm: [{n: [1], k: [1]}]\n",
    )
    assert "Qwen/Qwen3-32B stands in cases/models/new.yaml too" in text


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{why: kills, reason: x, op: gem}", "op: there is no op 'gem'"),
        ("{why: boring, reason: x}", "why: expected one of mismeasured, kills"),
        ("{why: kills}", "reason: is missing"),
        ("{why: kills, reason: ' '}", "reason: say why"),
        ("{why: kills, reason: x, backend: tensorrt}", "there is no backend 'tensorrt'"),
        (
            "{why: kills, reason: x, model: Qwen/Qwen3-33B}",
            "there is no model or architecture 'Qwen/Qwen3-33B'",
        ),
        (
            "{why: kills, reason: x, model: Qwen/Qwen3-32B-FP8}",
            "has the shapes of Qwen/Qwen3-32B: name that one",
        ),
        ("{why: kills, reason: x, where: {colour: red}}", "where: no op has a field 'colour'"),
        ("{why: kills, reason: x, op: gemm, where: {tokens: 1}}", "gemm has no field 'tokens'"),
        ("{why: kills, reason: x, op: gemm, where: {m: {atleast: 1}}}", "there is no test 'atleast'"),
        ("{why: kills, reason: x, op: gemm, where: {dtype: {min: 1}}}", "is a text"),
        ("{why: kills, reason: x, op: gemm, where: {m: one}}", "no value of this field can be 'one'"),
        ("{why: kills, reason: x, op: gemm, where: {m: {not_multiple_of: 0}}}", "must be at least 1"),
        ("{why: kills, reason: x, version: 1.3}", "version: is not a known key"),
        ("nothing", "expected a mapping, found 'nothing'"),
    ],
)
def test_a_mistake_in_a_skip(root, entry, message):
    text = mistakes(root, "cases/skips.yaml", f"# One.\n- {entry}\n")
    assert "cases/skips.yaml" in text
    assert message in text


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{op: moe, kernel: fast}", "backend: say which one"),
        ("{backend: sglang, kernel: fast}", "op: say which one"),
        ("{backend: sglang, op: moe}", "kernel: is missing"),
        ("{backend: sglang, op: moe, kernel: []}", "kernel: expected a kernel's name"),
        ("{backend: sglang, op: gemm, kernel: fast}", "cases of gemm name no dispatch"),
    ],
)
def test_a_mistake_in_a_dispatch(root, entry, message):
    assert message in mistakes(root, "cases/dispatch.yaml", f"- {entry}\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("vllm:\n  gem: []\n", r"cases/backends.yaml:2: vllm.gem: there is no op of this name"),
        ("vllm:\n  gemm: [{dtype: fp7}]\n", "there is no precision 'fp7'"),
        ("vllm:\n  gemm: [{m: fp8}]\n", "dtype: is missing"),
        ("vllm:\n  gemm: [{dtype: fp8}, {dtype: fp8}]\n", "declares one precision twice"),
        ("vllm:\n  moe_ep: [{dtype: fp8}]\n", "phase: is missing"),
    ],
)
def test_a_mistake_in_a_declaration(root, text, message):
    assert message in mistakes(root, "cases/backends.yaml", text)


def test_all_mistakes_of_all_files_at_once(root):
    (root / "cases/skips.yaml").write_text("- {why: kills, reason: x, op: gem}\n")
    (root / "cases/unverified.yaml").write_text("- {backend: torch, model: x}\n")
    text = mistakes(root, "cases/ops/gemm.yaml", "tokens: one\n")
    assert "cases/ops/gemm.yaml:1: tokens: expected a list of whole numbers" in text
    assert "cases/ops/gemm.yaml: features: is missing" in text
    assert "cases/skips.yaml:1: skips[0].op: there is no op 'gem'" in text
    assert "cases/unverified.yaml: unverified[0].note: is missing" in text
