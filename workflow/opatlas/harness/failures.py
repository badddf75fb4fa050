"""Failures as records: the classes of docs/harness.md and what each record carries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, cast

UNSUPPORTED = "unsupported"
KERNEL_LIMIT = "kernel_limit"
OUT_OF_MEMORY = "out_of_memory"
CUDA_FATAL = "cuda_fatal"
HANG = "hang"
WORKER_DIED = "worker_died"
INVALID_MEASUREMENT = "invalid_measurement"
UNEXPECTED = "unexpected"

CLASSES = (
    UNSUPPORTED,
    KERNEL_LIMIT,
    OUT_OF_MEMORY,
    CUDA_FATAL,
    HANG,
    WORKER_DIED,
    INVALID_MEASUREMENT,
    UNEXPECTED,
)

CONTENDED = "contended"
DISK_FULL = "disk_full"
HOST = "host"
DEVICE = "device"
PROTOCOL = "protocol"

# Phases of a case in the worker.
BEFORE = "before"
BUILD = "build"
MEASURE = "measure"
AFTER = "after"


MESSAGE_LIMIT = 4_000
TEXT_LIMIT = 16_000


@dataclass(frozen=True)
class Failure:
    """Why a case has no row.

    `reason` is set for invalid_measurement, and where one class has several causes; `phase` is what the
    worker was doing; `stack` the Python stack of a worker that hung or crashed; `exit` how a worker ended.
    """

    kind: str
    message: str
    reason: str | None = None
    exception: str | None = None
    traceback: str | None = None
    phase: str | None = None
    stack: str | None = None
    exit: str | None = None

    def record(self) -> dict[str, Any]:
        fields = asdict(self)
        return {"class": fields.pop("kind"), **fields}

    @property
    def leaves_a_broken_worker(self) -> bool:
        """Whether nothing that this worker says or holds can be trusted any more."""
        return self.kind in (CUDA_FATAL, HANG, WORKER_DIED) or self.reason in (HOST, DISK_FULL)

    @property
    def is_repeated(self) -> bool:
        """Whether the case gets a second run, alone in a fresh worker, before the failure is believed."""
        return self.leaves_a_broken_worker or self.kind == OUT_OF_MEMORY or self.reason == CONTENDED


def from_record(record: Mapping[str, Any]) -> Failure:
    """The failure in a message or journal record; other fields are ignored."""
    kept = {name: record.get(name) for name in Failure.__dataclass_fields__ if name != "kind"}
    return Failure(kind=record["class"], **cast(dict[str, Any], kept))


def clip(text: str, limit: int) -> str:
    """The two ends of a text that is too long to keep."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"
