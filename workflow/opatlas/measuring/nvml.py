"""What libnvidia-ml says about one GPU: its constant state, and its clocks while it works."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

SM_CLOCK = 1
POWER_CAP = "sw_power_cap"
THROTTLING = {
    0x04: POWER_CAP,
    0x08: "hw_slowdown",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake",
}
"""Reasons of nvmlClocksEventReasons (nvml.h) for which a GPU runs slower than it was asked to."""

NOT_AVAILABLE = (3, 7, 999)
"""NVML_ERROR_NOT_SUPPORTED, INSUFFICIENT_SIZE, UNKNOWN: the value is missing, the device is fine."""


class _Process(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("used_memory", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


class NvmlError(Exception):
    """libnvidia-ml is missing, or does not know the device."""


@dataclass(frozen=True)
class Reading:
    """One look at a working GPU: MHz, names of throttle reasons, degrees Celsius, watts."""

    sm_clock_mhz: int | None
    reasons: tuple[str, ...]
    temperature_c: int | None
    power_w: float | None


class Nvml:
    """The GPU with this UUID (`GPU-...`). NvmlError where there is no libnvidia-ml to ask."""

    def __init__(self, uuid: str) -> None:
        try:
            self._lib = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError as error:
            raise NvmlError(f"libnvidia-ml.so.1 cannot be loaded: {error}") from None
        self._must(self._lib.nvmlInit_v2())
        self._handle = ctypes.c_void_p()
        self._must(self._lib.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(self._handle)))

    def read(self, power: bool = False) -> Reading:
        reasons = self._number("nvmlDeviceGetCurrentClocksThrottleReasons", ctypes.c_ulonglong) or 0
        milliwatts = self._number("nvmlDeviceGetPowerUsage") if power else None
        return Reading(
            self._number("nvmlDeviceGetClockInfo", ctypes.c_uint, SM_CLOCK),
            tuple(name for bit, name in THROTTLING.items() if reasons & bit),
            self._number("nvmlDeviceGetTemperature", ctypes.c_uint, 0),
            None if milliwatts is None else milliwatts / 1000,
        )

    def facts(self) -> dict[str, Any]:
        """Driver, limits (W), clocks (MHz), modes: what does not change while a shard runs."""
        text = ctypes.create_string_buffer(96)
        self._must(self._lib.nvmlSystemGetDriverVersion(text, ctypes.c_uint(96)))
        ecc = ctypes.c_uint(), ctypes.c_uint()
        ecc_known = not self._lib.nvmlDeviceGetEccMode(self._handle, *map(ctypes.byref, ecc))
        return {
            "driver": text.value.decode(),
            "power_limit_w": self._watts("nvmlDeviceGetEnforcedPowerLimit"),
            "power_limit_default_w": self._watts("nvmlDeviceGetPowerManagementDefaultLimit"),
            "sm_clock_max_mhz": self._number("nvmlDeviceGetMaxClockInfo", ctypes.c_uint, SM_CLOCK),
            "sm_clock_application_mhz": self._number(
                "nvmlDeviceGetApplicationsClock", ctypes.c_uint, SM_CLOCK
            ),
            "memory_clock_max_mhz": self._number("nvmlDeviceGetMaxClockInfo", ctypes.c_uint, 2),
            "ecc": bool(ecc[0].value) if ecc_known else None,
            "persistence": bool(self._number("nvmlDeviceGetPersistenceMode")),
            "compute_mode": self._number("nvmlDeviceGetComputeMode"),
            "temperature_c": self._number("nvmlDeviceGetTemperature", ctypes.c_uint, 0),
        }

    def processes(self) -> set[int]:
        """Pids that hold a compute context on this GPU, as the driver numbers them."""
        room = 256
        count = ctypes.c_uint(room)
        found = (_Process * room)()
        self._must(
            self._lib.nvmlDeviceGetComputeRunningProcesses_v3(self._handle, ctypes.byref(count), found)
        )
        return {process.pid for process in found[: count.value]}

    def _watts(self, function: str) -> float | None:
        milliwatts = self._number(function)
        return None if milliwatts is None else milliwatts / 1000

    def _number(self, function: str, kind: Any = ctypes.c_uint, *arguments: int) -> int | None:
        value = kind()
        code = getattr(self._lib, function)(
            self._handle, *(ctypes.c_uint(a) for a in arguments), ctypes.byref(value)
        )
        if code in NOT_AVAILABLE:
            return None
        self._must(code)
        return int(value.value)

    def _must(self, code: int) -> None:
        if code:
            describe = self._lib.nvmlErrorString
            describe.restype = ctypes.c_char_p
            raise NvmlError(f"libnvidia-ml: {describe(code).decode()}")
