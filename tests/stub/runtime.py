"""The stub's framework version and device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opatlas.backends.stub.script import script
from opatlas.measuring.call import Call
from opatlas.measuring.measurement import Measurement
from opatlas.measuring.settings import Settings

VERSION = "1.0.0"


def versions() -> dict[str, str]:
    return {"framework": VERSION, **script().get("versions", {})}


def device(settings: Settings, platform: Mapping[str, Any]) -> StubDevice:
    return StubDevice()


class StubDevice:
    """A device whose calls return their own latency."""

    torch_device = None

    def copies(self, bytes_per_copy: int) -> int:
        return 1

    def free_bytes(self) -> int:
        return 1 << 30

    def facts(self) -> dict[str, Any]:
        return {"device": "stub", "sm": None, "uuid": "STUB-0", **script().get("facts", {})}

    def measure(self, call: Call) -> Any:
        latency = call.run(0)
        if not isinstance(latency, float):
            return latency
        return Measurement(
            latency=latency,
            latency_mad=0.0,
            latency_ci=0.0,
            samples=10,
            stop_reason="converged",
            timing_method="cpu_perf_counter",
            kernels=("stub_kernel",),
        )

    def check_alone(self) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def reset(self) -> None:
        pass
