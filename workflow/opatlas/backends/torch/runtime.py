"""What PyTorch is imported, and on what it runs."""

from __future__ import annotations

import platform as python_platform
from collections.abc import Mapping
from typing import Any

import numpy
import torch

from opatlas.measuring.device import Device, open_device
from opatlas.measuring.settings import Settings


def versions() -> dict[str, str]:
    """Exact versions of what is imported; `framework` is the one a dataset is named after."""
    found = {
        "framework": torch.__version__,
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "python": python_platform.python_version(),
    }
    if torch.version.cuda:
        found["cuda"] = torch.version.cuda
        found["cudnn"] = str(torch.backends.cudnn.version())
    return found


def device(settings: Settings, platform: Mapping[str, Any]) -> Device:
    return open_device(settings, platform)
