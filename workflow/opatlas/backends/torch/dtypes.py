"""The tables' names of precisions, as PyTorch's."""

from __future__ import annotations

from typing import Any

import torch

from opatlas.measuring.errors import Unsupported

NAMES = {
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "fp8": torch.float8_e4m3fn,
}


def torch_dtype(name: str) -> Any:
    """Unsupported where PyTorch has no such precision."""
    try:
        return NAMES[name]
    except KeyError:
        raise Unsupported(f"PyTorch has no operator in {name}; it has {', '.join(NAMES)}") from None
