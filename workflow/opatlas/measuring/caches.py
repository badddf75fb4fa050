"""Fingerprints of the compile and autotune caches that a measurement starts from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

CACHE_VARIABLES = (
    "CUDA_CACHE_PATH",
    "DG_JIT_CACHE_DIR",
    "FLASHINFER_WORKSPACE_BASE",
    "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_CACHE_DIR",
    "TRTLLM_DG_CACHE_DIR",
    "VLLM_CACHE_ROOT",
    "XDG_CACHE_HOME",
)
"""Environment variables that name a folder in which a framework keeps compiled or tuned kernels."""


def cache_hashes(environment: Mapping[str, str]) -> dict[str, str]:
    """sha256 over names and contents of the files in each cache folder; "empty" where there are none.

    What an autotuner chose earlier decides which kernel runs now, so runs from different caches are
    different runs.
    """
    return {
        variable: folder_hash(Path(environment[variable]))
        for variable in CACHE_VARIABLES
        if environment.get(variable)
    }


def folder_hash(folder: Path) -> str:
    digest = hashlib.sha256()
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for path in files:
        content = hashlib.sha256(path.read_bytes()).digest()
        digest.update(str(path.relative_to(folder)).encode() + b"\0" + content)
    return digest.hexdigest() if files else "empty"
