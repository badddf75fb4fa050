"""Operand precisions by the names of the published tables, and their size in memory."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

# Bytes per element, without block scales.
BYTES: dict[str, float] = {
    "float32": 4.0,
    "bfloat16": 2.0,
    "half": 2.0,
    "int8": 1.0,
    "fp8": 1.0,
    "fp8_block": 1.0,
    "int4_wo": 0.5,
    "nvfp4": 0.5,
    "w4a16_mxfp4": 0.5,
    "w4a8_mxfp4_mxfp8": 0.5,
}

# Precision of activations where it is not that of the weights.
ACTIVATIONS: dict[str, str] = {
    "int4_wo": "bfloat16",
    "w4a16_mxfp4": "bfloat16",
    "w4a8_mxfp4_mxfp8": "fp8",
}


def element_bytes(dtypes: Iterable[str]) -> npt.NDArray[np.float64]:
    """Bytes per element for each of `dtypes`."""
    return np.array([BYTES[dtype] for dtype in dtypes])
