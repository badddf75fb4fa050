"""gemm: torch.nn.functional.linear, and torch._scaled_mm for fp8 with one scale per tensor."""

from __future__ import annotations

from typing import Any

import torch

from opatlas.backends.torch.dtypes import torch_dtype
from opatlas.measuring.call import Call
from opatlas.measuring.device import Device, require_memory
from opatlas.ops.gemm import inputs
from opatlas.ops.gemm.case import Case


def build(case: Case, device: Device) -> Any:
    """Weights [copies, n, k], one contiguous tensor per copy."""
    dtype = torch_dtype(case.dtype)
    size = case.n * case.k * dtype.itemsize
    copies = device.copies(size)
    require_memory(device, weights=copies * size)
    scale = inputs.FP8_SPREAD if case.dtype == "fp8" else inputs.WEIGHT_SCALE
    return device.normal((copies, case.n, case.k), dtype, scale).unbind(0)


def call(built: Any, case: Case, device: Device) -> Call:
    dtype = built[0].dtype
    output = torch.bfloat16 if case.dtype == "fp8" else dtype
    x_bytes, y_bytes = case.m * case.k * dtype.itemsize, case.m * case.n * output.itemsize
    w_bytes = case.n * case.k * dtype.itemsize
    sets = device.sets(x_bytes + y_bytes + w_bytes)
    # One output more than sets: the one that is being written.
    require_memory(device, x=sets * x_bytes, y=(sets + 1) * y_bytes)
    copies = len(built)
    if case.dtype == "fp8":
        xs = device.normal((sets, case.m, case.k), dtype, inputs.FP8_SPREAD).unbind(0)
        x_scale = torch.tensor(1 / inputs.FP8_SPREAD, device=device.torch_device)
        w_scale = torch.tensor(inputs.WEIGHT_SCALE / inputs.FP8_SPREAD, device=device.torch_device)
        transposed = [weights.t() for weights in built]

        def run(i: int) -> Any:
            x, w = xs[i % sets], transposed[i % copies]
            return torch._scaled_mm(x, w, scale_a=x_scale, scale_b=w_scale, out_dtype=output)

    else:
        xs = device.normal((sets, case.m, case.k), dtype).unbind(0)

        def run(i: int) -> Any:
            return torch.nn.functional.linear(xs[i % sets], built[i % copies])

    return Call(run, copies, w_bytes, sets)


def kernel_source(built: Any, case: Case) -> str:
    return "torch._scaled_mm" if case.dtype == "fp8" else "torch.nn.functional.linear"
