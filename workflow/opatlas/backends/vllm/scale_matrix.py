"""scale_matrix: activations quantised to fp8 by the scale of a checkpoint, as vLLM launches it."""

from __future__ import annotations

from opatlas.backends.vllm.quantize import Built, call, kernel_source
from opatlas.backends.vllm.quantize import build as build_quantised
from opatlas.measuring.device import Device
from opatlas.ops.scale_matrix.case import Case

__all__ = ["build", "call", "kernel_source"]


def build(case: Case, device: Device) -> Built:
    return build_quantised(case, device, "static")
