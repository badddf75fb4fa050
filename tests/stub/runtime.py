"""The stub's framework version and device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opatlas.backends.stub import misbehave
from opatlas.backends.stub.script import script
from opatlas.measuring.call import Call
from opatlas.measuring.errors import InvalidMeasurement
from opatlas.measuring.measurement import Measurement
from opatlas.measuring.settings import Settings

VERSION = "1.0.0"
KERNEL = "fmha_v2_stub_kernel"


def versions() -> dict[str, str]:
    return {"framework": VERSION, **script().get("versions", {})}


def device(settings: Settings, platform: Mapping[str, Any]) -> StubDevice:
    return StubDevice()


class StubDevice:
    """A device whose calls return their own latency, and that cases can break."""

    torch_device = None

    def __init__(self) -> None:
        self.builds = 0
        self.children: list[Any] = []
        self.broken: Exception | None = None
        self.latent: Exception | None = None
        self.late: Exception | None = None
        self.company = False

    def copies(self, bytes_per_copy: int) -> int:
        return 1

    def free_bytes(self) -> int:
        return 1 << 30

    def facts(self) -> dict[str, Any]:
        misbehave.by_name(script().get("opening", "fine"))(self)
        return {"device": "stub", "sm": None, "uuid": "STUB-0", **script().get("facts", {})}

    def measure(self, call: Call) -> Any:
        self._raise(self.latent)
        latency = call.run(0)
        if not isinstance(latency, float):
            return latency
        call.require_kernel((KERNEL,))
        return Measurement(
            latency=latency,
            latency_mad=0.0,
            latency_ci=0.0,
            samples=10,
            stop_reason="converged",
            timing_method="cpu_perf_counter",
            kernels=(KERNEL,),
            notes={"builds": self.builds},
        )

    def check_alone(self) -> None:
        if self.company:
            self.company = False
            raise InvalidMeasurement("contended", "process 4711 computes on the device too")
        if self.late:
            # Breaks only now, so that the case that did it is finished first.
            self.broken, self.late = self.late, None

    def synchronize(self) -> None:
        self._raise(self.broken)

    def reset(self) -> None:
        self._raise(self.latent)

    def _raise(self, error: Exception | None) -> None:
        if error:
            self.broken = error
            raise error
