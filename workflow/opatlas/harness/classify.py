"""From an exception in the worker to a failure, by its type and attributes."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from typing import Any

from opatlas.files import NO_SPACE
from opatlas.harness import failures
from opatlas.harness.failures import MESSAGE_LIMIT, TEXT_LIMIT, Failure, clip
from opatlas.measuring.errors import InvalidMeasurement, KernelLimit, Unsupported

# Codes of cudaError_t (CUDA Runtime API, 'Data types used by CUDA Runtime'): the first says that memory ran
# out, the others that the loaded binary has no code for this device or the device lacks the feature. None of
# them breaks the context; every other code counts as fatal.
CUDA_OUT_OF_MEMORY = 2
CUDA_NO_KERNEL = {98: "invalid_device_function", 209: "no_kernel_image", 801: "not_supported"}
CUDA_TEXT = {
    "out of memory": CUDA_OUT_OF_MEMORY,
    "invalid device function": 98,
    "no kernel image is available": 209,
    "operation not supported": 801,
    "CUBLAS_STATUS_ALLOC_FAILED": CUDA_OUT_OF_MEMORY,
    "CUBLAS_STATUS_ARCH_MISMATCH": 209,
    "CUBLAS_STATUS_NOT_SUPPORTED": 801,
}


def describe(error: BaseException, phase: str) -> Failure:
    """The failure record of an exception that a case raised during `phase`."""
    kind, reason = _kind(error)
    return Failure(
        kind=kind,
        reason=reason,
        exception=f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins."),
        message=clip(_text(error), MESSAGE_LIMIT),
        traceback=clip(
            "".join(traceback.format_exception(type(error), error, error.__traceback__)), TEXT_LIMIT
        ),
        phase=phase,
    )


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as broken:
        return f"<message unreadable: {type(broken).__name__}>"


def _kind(error: BaseException) -> tuple[str, str | None]:
    """Class and reason. A device error or a lack of memory counts wherever it is in the chain of causes."""
    chain = list(_causes(error))
    for cause in chain:
        if code := _cuda_code(cause):
            if code == CUDA_OUT_OF_MEMORY:
                return failures.OUT_OF_MEMORY, failures.DEVICE
            if reason := CUDA_NO_KERNEL.get(code):
                return failures.UNSUPPORTED, reason
            return failures.CUDA_FATAL, None
    for cause in chain:
        if isinstance(cause, _torch("OutOfMemoryError")):
            return failures.OUT_OF_MEMORY, failures.DEVICE
        if isinstance(cause, MemoryError):
            return failures.OUT_OF_MEMORY, failures.HOST
        if isinstance(cause, OSError) and cause.errno in NO_SPACE:
            return failures.UNEXPECTED, failures.DISK_FULL
    if isinstance(error, InvalidMeasurement):
        return failures.INVALID_MEASUREMENT, error.reason
    if isinstance(error, KernelLimit):
        return failures.KERNEL_LIMIT, None
    if isinstance(error, (Unsupported, NotImplementedError)):
        return failures.UNSUPPORTED, None
    return failures.UNEXPECTED, None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__


def _torch(name: str) -> Any:
    """A class of torch, or a tuple that matches nothing where torch isn't imported or lacks it."""
    return getattr(sys.modules.get("torch"), name, ())


def _cuda_code(error: BaseException) -> int | None:
    """The CUDA error code that an exception of torch stands for; -1 where it names an unknown one.

    A status of cuBLAS that is none of CUDA_TEXT says nothing about the device: None.
    """
    if isinstance(error, _torch("OutOfMemoryError")):
        return None
    text = _text(error) if isinstance(error, RuntimeError) else ""
    if isinstance(error, _torch("AcceleratorError")):
        code = getattr(error, "error_code", None)
        if isinstance(code, int) and code > 0:
            return code
    elif not text.startswith(("CUDA error", "CUDA driver error", "CUDA runtime error")):
        return None
    unknown = None if "CUBLAS_STATUS" in text else -1
    return next((code for part, code in CUDA_TEXT.items() if part in text), unknown)
