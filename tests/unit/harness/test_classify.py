"""From exceptions, the real ones of torch included, to classes."""

from __future__ import annotations

import errno

import pytest
from opatlas.harness import failures
from opatlas.harness.classify import describe
from opatlas.harness.failures import Failure, from_record
from opatlas.measuring.errors import InvalidMeasurement, KernelLimit, Unsupported


class Unreadable(Exception):
    def __str__(self):
        raise ValueError("no text")


@pytest.mark.parametrize(
    ("error", "kind", "reason"),
    [
        (InvalidMeasurement("no_write", "x"), "invalid_measurement", "no_write"),
        (KernelLimit("1 > 0"), "kernel_limit", None),
        (Unsupported("no"), "unsupported", None),
        (NotImplementedError("no"), "unsupported", None),
        (MemoryError(), "out_of_memory", "host"),
        (OSError(errno.ENOSPC, "full"), "unexpected", "disk_full"),
        (OSError(errno.EPERM, "no"), "unexpected", None),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), "cuda_fatal", None),
        (RuntimeError("CUDA error: out of memory"), "out_of_memory", "device"),
        (
            RuntimeError("CUDA error: no kernel image is available"),
            "unsupported",
            "no_kernel_image",
        ),
        (
            RuntimeError("CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling"),
            "unsupported",
            "not_supported",
        ),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling"), "out_of_memory", "device"),
        (RuntimeError("CUDA error: CUBLAS_STATUS_INVALID_VALUE when calling"), "unexpected", None),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), "unexpected", None),
        (ValueError("CUDA error: said by somebody else"), "unexpected", None),
        (Unreadable(), "unexpected", None),
        (SystemExit(0), "unexpected", None),
    ],
)
def test_kinds(error, kind, reason):
    failure = describe(error, "measure")
    assert (failure.kind, failure.reason, failure.phase) == (kind, reason, "measure")
    assert kind in failures.CLASSES


def test_a_device_error_counts_under_whatever_wraps_it():
    try:
        try:
            raise RuntimeError("CUDA error: unspecified launch failure")
        except RuntimeError as error:
            raise Unsupported("could not") from error
    except Unsupported as error:
        failure = describe(error, "build")
    assert failure.kind == "cuda_fatal"
    assert failure.exception == "opatlas.measuring.errors.Unsupported"
    assert "unspecified launch failure" in failure.traceback


def test_exceptions_of_torch():
    torch = pytest.importorskip("torch")
    assert describe(torch.OutOfMemoryError("CUDA out of memory"), "build").kind == "out_of_memory"
    assert describe(torch.cuda.OutOfMemoryError("CUDA out of memory"), "build").reason == "device"
    fatal = torch.AcceleratorError("an illegal memory access was encountered")
    assert describe(fatal, "measure").kind == "cuda_fatal"
    for code, kind in ((2, "out_of_memory"), (209, "unsupported"), (700, "cuda_fatal"), (719, "cuda_fatal")):
        error = torch.AcceleratorError("CUDA error: something")
        error.error_code = code
        assert describe(error, "measure").kind == kind
    with pytest.raises(NotImplementedError) as refused:
        torch.ones(2).to(torch.float8_e4m3fn).sum()
    assert describe(refused.value, "measure").kind == "unsupported"


def test_long_texts_are_clipped_in_the_middle():
    failure = describe(RuntimeError("a" * 50_000 + "the end"), "measure")
    assert len(failure.message) < 5_000
    assert failure.message.endswith("the end")


def test_a_record_and_back():
    failure = Failure("hang", "late", phase="build", stack="File ...")
    assert from_record({**failure.record(), "case": "x"}) == failure


@pytest.mark.parametrize(
    ("failure", "broken", "repeated"),
    [
        (Failure("cuda_fatal", ""), True, True),
        (Failure("hang", ""), True, True),
        (Failure("worker_died", ""), True, True),
        (Failure("out_of_memory", "", reason="device"), False, True),
        (Failure("out_of_memory", "", reason="host"), True, True),
        (Failure("invalid_measurement", "", reason="contended"), False, True),
        (Failure("unexpected", "", reason="disk_full"), True, True),
        (Failure("invalid_measurement", "", reason="unstable"), False, False),
        (Failure("unsupported", ""), False, False),
        (Failure("kernel_limit", ""), False, False),
        (Failure("unexpected", ""), False, False),
    ],
)
def test_the_escalation_ladder(failure, broken, repeated):
    assert (failure.leaves_a_broken_worker, failure.is_repeated) == (broken, repeated)
