"""A linear layer with random weights, quantised as a checkpoint of its precision is."""

from __future__ import annotations

import copy
from typing import Any

import torch
from vllm.model_executor.layers.linear import ReplicatedLinear
from vllm.model_executor.layers.quantization.fp8 import Fp8Config
from vllm.model_executor.layers.quantization.modelopt import ModelOptNvFp4Config
from vllm.model_executor.model_loader.utils import process_weights_after_loading

from opatlas.backends.vllm.engine import any_engine, building
from opatlas.measuring.device import Device
from opatlas.ops.gemm.inputs import FP8_SPREAD, WEIGHT_SCALE

NAME = "model.layers.0.mlp.down_proj"

SCALE_SPREAD = 0.5
"""Spread of block scales in powers of two: blocks of trained weights differ by about so much."""


def quantization(dtype: str, activations: str = "dynamic") -> Any:
    """The quantisation config that vLLM reads from a checkpoint of this precision; None for bfloat16."""
    if dtype == "bfloat16":
        return None
    if dtype == "fp8":
        return Fp8Config(is_checkpoint_fp8_serialized=True, activation_scheme=activations)
    if dtype == "fp8_block":
        return Fp8Config(
            is_checkpoint_fp8_serialized=True, activation_scheme=activations, weight_block_size=[128, 128]
        )
    if dtype == "nvfp4":
        return ModelOptNvFp4Config(is_checkpoint_nvfp4_serialized=True)
    raise ValueError(f"vLLM's gemm has no path for {dtype}")


def linear_layer(dtype: str, n: int, k: int, device: Device, activations: str = "dynamic") -> Any:
    """A layer [n, k] as it is after loading: with the kernel that vLLM picks, weights in its layout.

    DIFFERS: a ReplicatedLinear stands for the column and row parallel layers of a model. Their
    quantisation method and kernel are the same; they add a collective, which is an op of its own.
    """
    config = any_engine()
    with building(config, device):
        layer = ReplicatedLinear(
            input_size=k,
            output_size=n,
            bias=False,
            quant_config=quantization(dtype, activations),
            prefix=NAME,
            return_bias=False,
            disable_tp=True,
        )
        _load(layer, device)
        place = torch.device(device.torch_device)
        process_weights_after_loading(layer, model_config=config.model_config, target_device=place)
    return layer


def _load(layer: Any, device: Device) -> None:
    """Gives each parameter random values of the right distribution; weights are slices of the pool."""
    for name, parameter in list(layer.named_parameters()):
        parameter.data = _values(name, parameter, device)


def _values(name: str, parameter: Any, device: Device) -> Any:
    shape, dtype = parameter.shape, parameter.dtype
    if name == "weight" and dtype == torch.uint8:
        return torch.randint(256, shape, dtype=dtype, device=device.torch_device)
    if name == "weight":
        if dtype == torch.float8_e4m3fn:
            # vLLM may quantise these again in place, and slices of the pool are not ours to change.
            return device.normal(shape, dtype, FP8_SPREAD).clone()
        return device.normal(shape, dtype, WEIGHT_SCALE)
    scale = WEIGHT_SCALE / FP8_SPREAD if name.startswith("weight") else 1 / FP8_SPREAD
    spread = SCALE_SPREAD if parameter.numel() > 1 else 0.0
    exponents = torch.randn(shape, device=device.torch_device, dtype=torch.float32)
    factors = exponents.mul_(spread).exp2_()
    return factors.mul_(scale if dtype == torch.float32 else 1).to(dtype)


def another(layer: Any) -> Any:
    """The same layer with weights and scales in memory of their own."""
    twin = copy.copy(layer)
    twin._parameters = {
        name: parameter if parameter is None else torch.nn.Parameter(parameter.data.clone(), False)
        for name, parameter in layer._parameters.items()
    }
    return twin
