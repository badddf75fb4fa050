"""gemm: vLLM's linear layer, its activations quantised as the precision needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from vllm.model_executor.kernels.linear.scaled_mm.BlockScaledMMLinearKernel import (
    Fp8BlockScaledDynamicMMLinearKernel,
)
from vllm.model_executor.layers.utils import default_unquantized_gemm, dispatch_unquantized_gemm

from opatlas.backends.vllm.linear import another, linear_layer
from opatlas.measuring.call import Call
from opatlas.measuring.device import Device, require_memory
from opatlas.measuring.errors import InvalidMeasurement
from opatlas.ops.gemm.case import Case

BYTES = {"bfloat16": 2.0, "fp8": 1.0, "fp8_block": 1.0, "nvfp4": 0.5}
"""Bytes of a weight, without block scales."""

KERNELS = {
    "CutlassFP8ScaledMMLinearKernel": "cutlass",
    "CutlassFp8BlockScaledMMKernel": "cutlass",
    "DeepGemmFp8BlockScaledMMKernel": "(?i)gemm",
    "FlashInferFp8BlockScaledMMKernel": "(?i)gemm",
    "TritonFp8BlockScaledMMKernel": "w8a8_.*block",
}
"""What a kernel of each of vLLM's classes is called; where it is missing the case is void."""

WEIGHT_ONLY = ("Marlin", "Emulation")
"""vLLM's classes that widen the weights and multiply in bfloat16: not the precision a row would name."""

SWITCH = 32
"""Tokens from which on FlashInferFp8DeepGEMMDynamicBlockScaledKernel runs its fallback:
vllm/model_executor/kernels/linear/scaled_mm/flashinfer.py,
_dynamic_flashinfer_deepgemm_blockscale_gemm_impl."""


@dataclass(frozen=True)
class Built:
    """The copies of a layer, and the class of the kernel that vLLM picked for it."""

    layers: tuple[Any, ...]
    kernel: Any


def build(case: Case, device: Device) -> Built:
    size = weight_bytes(case)
    copies = device.copies(size)
    # While a layer is built its weights exist as vLLM allocates them and as the pool has them, too.
    require_memory(device, weights=(copies + 2) * size)
    layer = linear_layer(case.dtype, case.n, case.k, device)
    kernel = selected(layer)
    if any(word in type(kernel).__name__ for word in WEIGHT_ONLY):
        raise InvalidMeasurement(
            "wrong_kernel", f"vLLM picked {type(kernel).__name__}, which does not multiply in {case.dtype}"
        )
    return Built((layer, *(another(layer) for _ in range(copies - 1))), kernel)


def selected(layer: Any) -> Any:
    """The kernel object that vLLM chose for a layer; for bfloat16 the function that it dispatches to."""
    method = layer.quant_method
    for name in ("fp8_linear", "kernel"):
        if hasattr(method, name):
            return getattr(method, name)
    return dispatch_unquantized_gemm()


def call(built: Built, case: Case, device: Device) -> Call:
    x_bytes, y_bytes = 2 * case.m * case.k, 2 * case.m * case.n
    size = weight_bytes(case)
    sets = device.sets(x_bytes + y_bytes + size)
    # One output more than sets: the one that is being written. Quantised activations are in between.
    require_memory(device, x=sets * x_bytes, quantised=x_bytes, y=(sets + 1) * y_bytes)
    xs = device.normal((sets, case.m, case.k), torch.bfloat16).unbind(0)
    layers = built.layers
    copies = len(layers)

    def run(i: int) -> Any:
        return layers[i % copies](xs[i % sets])

    return Call(run, copies, size, sets, kernel=KERNELS.get(kernel_source(built, case), ""))


def kernel_source(built: Built, case: Case) -> str:
    kernel = built.kernel
    if kernel is default_unquantized_gemm:
        return "torch.nn.functional.linear"
    if isinstance(kernel, Fp8BlockScaledDynamicMMLinearKernel):
        kernel = kernel.base if case.m < SWITCH else kernel.fallback
    return str(getattr(kernel, "__name__", type(kernel).__name__))


def weight_bytes(case: Case) -> int:
    return int(BYTES[case.dtype] * case.n * case.k)
