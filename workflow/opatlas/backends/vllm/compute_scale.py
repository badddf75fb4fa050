"""compute_scale: activations quantised to fp8 by a scale that is found first, as vLLM launches it.

vLLM finds one scale per token and quantises in the same kernel, so a row holds both. What finding the
scale adds is that less the row of scale_matrix with the same m and k; a difference is not stored here,
since it would not say how exact it is, and zero would hide what is below the error.
"""

from __future__ import annotations

from opatlas.backends.vllm.quantize import Built, call, kernel_source
from opatlas.backends.vllm.quantize import build as build_quantised
from opatlas.measuring.device import Device
from opatlas.ops.compute_scale.case import Case

__all__ = ["build", "call", "kernel_source"]


def build(case: Case, device: Device) -> Built:
    return build_quantised(case, device, "dynamic")
