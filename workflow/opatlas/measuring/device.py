"""What a runner and the worker see of the one device that is measured."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from opatlas.measuring.call import Call
from opatlas.measuring.errors import KernelLimit
from opatlas.measuring.measurement import Measurement
from opatlas.measuring.settings import Settings


class Device(Protocol):
    """One GPU, or the CPU. Used by one thread of one process."""

    torch_device: Any

    def copies(self, bytes_read: int, bytes_held: int = 0) -> int:
        """How many sets of weights (or KV) a call needs so that each is cold when its turn comes.

        A call reads `bytes_read` of a set; `bytes_held` is what a set takes, if that is more.
        """

    def sets(self, bytes_per_call: int) -> int:
        """How many sets of activations can rotate and stay warm, if a call touches so many bytes."""

    def normal(self, shape: Sequence[int], dtype: Any, scale: float = 1.0) -> Any:
        """A tensor of normal values with standard deviation `scale`.

        A slice of a pool, so it costs almost nothing; read-only for the caller. Slices asked for
        between two measurements do not overlap, apart from their content repeating.
        """

    def free_bytes(self) -> int:
        """What a runner could still allocate."""

    def measure(self, call: Call) -> Measurement:
        """Times the call. InvalidMeasurement where its time would not be a true one."""

    def facts(self) -> dict[str, Any]:
        """The constant state of the device: name, driver, limits, clocks, caches. JSON values."""

    def check_alone(self) -> None:
        """InvalidMeasurement("contended") when another process computes on the device."""

    def synchronize(self) -> None:
        """Returns when the device is idle; raises what its work raised."""

    def reset(self) -> None:
        """Between builds: gives back graph memory and starts the pools afresh."""


def open_device(settings: Settings, platform: Mapping[str, Any]) -> Device:
    """The one visible GPU for a platform with an `sm`, else the CPU."""
    if platform.get("sm") is None:
        from opatlas.measuring.cpu import CpuDevice

        return CpuDevice(settings)
    from opatlas.measuring.cuda import CudaDevice

    return CudaDevice(settings)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Keeps Python's garbage collector, which can take tens of ms, out of the samples."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def require_memory(device: Device, **parts: int) -> None:
    """KernelLimit, with the sum written out, unless the named parts (bytes) fit into free memory."""
    total, free = sum(parts.values()), device.free_bytes()
    if total > 0.95 * free:
        terms = " + ".join(f"{name} {size:,}" for name, size in parts.items())
        raise KernelLimit(f"{terms} = {total:,} bytes, above 95 % of the {free:,} bytes free on the device")
