"""The torch backend's ops on a GPU: they run, by graph, and compute what they should."""

from __future__ import annotations

import importlib

import pytest
import torch
from opatlas.measuring.errors import KernelLimit, Unsupported
from opatlas.ops.ids import parse_id

CASES = [
    "gemm/dtype=bfloat16/m=33/n=512/k=1024",
    "gemm/dtype=fp8/m=1/n=256/k=5120",
    "gemm/dtype=fp8/m=257/n=512/k=1024",
    "gemm/dtype=float32/m=8/n=256/k=256",
    "attention_context/dtype=bfloat16/kv_dtype=bfloat16/heads=8/kv_heads=2/head_dim=128/window=0/batch=2/isl=256",
    "attention_context/dtype=bfloat16/kv_dtype=bfloat16/heads=8/kv_heads=8/head_dim=64/window=128/batch=1/isl=512",
    "attention_generation/dtype=bfloat16/kv_dtype=bfloat16/heads=8/kv_heads=2/head_dim=128/window=0/batch=4/kv_len=1024",
    "attention_generation/dtype=bfloat16/kv_dtype=bfloat16/heads=8/kv_heads=1/head_dim=64/window=128/batch=4/kv_len=1024",
    "moe/dtype=bfloat16/hidden=1024/inter=512/topk=2/experts=8/tp=2/ep=2/distribution=power_law_1.2/tokens=65",
    "moe/dtype=bfloat16/hidden=1024/inter=512/topk=8/experts=64/tp=1/ep=8/distribution=balanced/tokens=1",
]


@pytest.mark.parametrize("case_id", CASES)
def test_runs_by_graph(device, case_id):
    op, case = parse_id(case_id)
    runner = importlib.import_module(f"opatlas.backends.torch.{op}")
    built = runner.build(case, device)
    measured = device.measure(runner.call(built, case, device))
    assert measured.timing_method == "cuda_graph"
    assert measured.kernels
    assert measured.latency > 0.0005
    assert runner.kernel_source(built, case).startswith("torch.")


def test_fp8_product_is_right(device):
    from opatlas.backends.torch import gemm
    from opatlas.ops.gemm.inputs import FP8_SPREAD, WEIGHT_SCALE

    _, case = parse_id("gemm/dtype=fp8/m=16/n=256/k=512")
    built = gemm.build(case, device)
    out = gemm.call(built, case, device).run(0)
    # Normal operands of unit and WEIGHT_SCALE spread: an output spreads by sqrt(k) * WEIGHT_SCALE.
    assert out.float().std().item() == pytest.approx(512**0.5 * WEIGHT_SCALE, rel=0.2)
    assert built[0].float().std().item() == pytest.approx(FP8_SPREAD, rel=0.05)


def test_precisions_that_pytorch_lacks_are_unsupported(device):
    from opatlas.backends.torch import attention_context, gemm

    with pytest.raises(Unsupported):
        gemm.build(parse_id("gemm/dtype=nvfp4/m=1/n=256/k=256")[1], device)
    _, case = parse_id(CASES[4].replace("kv_dtype=bfloat16", "kv_dtype=fp8"))
    with pytest.raises(Unsupported):
        attention_context.call(attention_context.build(case, device), case, device)


def test_what_does_not_fit_is_refused_with_its_arithmetic(device):
    from opatlas.backends.torch import gemm

    before = torch.cuda.memory_reserved()
    with pytest.raises(KernelLimit, match=r"weights .* = .* bytes, above 95 % of"):
        gemm.build(parse_id("gemm/dtype=bfloat16/m=1/n=1048576/k=1048576")[1], device)
    assert torch.cuda.memory_reserved() == before
