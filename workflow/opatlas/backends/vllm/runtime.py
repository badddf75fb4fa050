"""What vLLM is imported, and on what it runs."""

from __future__ import annotations

import os
import platform as python_platform
from collections.abc import Mapping
from importlib import metadata
from typing import Any

# Each build makes an engine's configuration, which is a page of INFO lines.
os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")

import numpy
import torch
import vllm

from opatlas.measuring.device import Device, open_device
from opatlas.measuring.settings import Settings

KERNEL_PACKAGES = ("flashinfer-python", "nvidia-cutlass-dsl", "quack-kernels", "triton")
"""Packages besides vLLM and PyTorch that bring kernels which vLLM may pick."""


def versions() -> dict[str, str]:
    """Exact versions of what is imported; `framework` is the one a dataset is named after."""
    found = {
        "framework": vllm.__version__,
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "python": python_platform.python_version(),
        "cuda": str(torch.version.cuda),
    }
    for package in KERNEL_PACKAGES:
        for distribution in metadata.distributions(name=package):
            found[package] = distribution.version
    return found


def device(settings: Settings, platform: Mapping[str, Any]) -> Device:
    return open_device(settings, platform)
