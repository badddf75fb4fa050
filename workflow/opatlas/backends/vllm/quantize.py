"""What compute_scale and scale_matrix share: the quantisation of activations of vLLM's fp8 linear layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from opatlas.backends.vllm.gemm import selected
from opatlas.backends.vllm.launched import operators
from opatlas.backends.vllm.linear import linear_layer
from opatlas.measuring.call import Call
from opatlas.measuring.device import Device, require_memory
from opatlas.measuring.errors import Unsupported
from opatlas.ops.quantize_case import QuantizeCase

ROWS = 128
"""Rows of the weight beside which the activations are quantised; how they are does not depend on it."""


@dataclass
class Built:
    """`quantise(x, scale)` as the layer calls it, the scale it knows (None: it finds one), and the op
    that it was seen to launch."""

    quantise: Any
    scale: Any
    source: str = ""


def build(case: QuantizeCase, device: Device, activations: str) -> Built:
    if case.dtype != "fp8":
        raise Unsupported(f"vLLM quantises activations of these layers to fp8, not to {case.dtype}")
    layer = linear_layer(case.dtype, ROWS, case.k, device, activations)
    kernel = selected(layer)
    if not hasattr(kernel, "quant_fp8"):
        raise Unsupported(f"{type(kernel).__name__} does not quantise activations")
    return Built(kernel.quant_fp8, layer.input_scale)


def call(built: Built, case: QuantizeCase, device: Device) -> Call:
    """Activations come from the layer before and are warm; so is what is written."""
    values = case.m * case.k
    sets = device.sets(3 * values)
    require_memory(device, x=sets * 2 * values, y=(sets + 1) * values)
    xs = device.normal((sets, case.m, case.k), torch.bfloat16).unbind(0)

    def run(i: int) -> Any:
        values, scale = built.quantise(xs[i % sets], built.scale, None)
        # A scale that is given comes back as it is: no output that could be checked.
        return (values, scale) if built.scale is None else values

    ran = operators(lambda: run(0), "_C")
    built.source = "+".join(ran)
    return Call(run, sets=sets)


def kernel_source(built: Built, case: QuantizeCase) -> str:
    return built.source
