"""config/platforms.yaml: the machines that datasets are measured on."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opatlas.config.document import Section
from opatlas.errors import Problems

NAME = re.compile(r"^(cpu|sm[0-9]{2,3})(-[a-z0-9]+)*$")
GRES = re.compile(r"^gpu(:[A-Za-z0-9_.-]+)?:[1-9][0-9]*$")


@dataclass(frozen=True)
class Slurm:
    """Where jobs of a platform run; `gres` is one device, `max_minutes` the longest job allowed."""

    partition: str
    gres: str
    cpus: int
    mem_mb: int
    account: str | None = None
    qos: str | None = None
    max_minutes: int | None = None


@dataclass(frozen=True)
class Peaks:
    """Ceilings of the roofline: bytes per second of memory, FLOP per second by operand precision."""

    bytes_per_s: float
    flops: dict[str, float]


@dataclass(frozen=True)
class Limits:
    """What a platform leaves out of a plan; None and empty leave out nothing."""

    models: tuple[str, ...] | None = None
    flops: float | None = None
    bytes: float | None = None
    fields: dict[str, dict[str, tuple[Any, ...]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Platform:
    name: str
    sm: int | None
    system: str
    gpu: str | None
    slurm: Slurm | None
    peaks: Peaks
    limits: Limits
    runtime: str | None


def load(path: Path, name: str, problems: Problems) -> dict[str, Platform]:
    """Reads the platforms by name; every mistake goes to `problems`."""
    top = Section.read(path, problems, name)
    platforms = {}
    for key, section in top.sections():
        if not NAME.match(key):
            top.wrong(key, "a platform is named cpu, sm90, or sm90-<system>")
        platforms[key] = _platform(key, section)
    return platforms


def _platform(name: str, section: Section) -> Platform:
    on_gpu = not name.startswith("cpu")
    sm = section.integer("sm", minimum=70) if on_gpu else None
    if on_gpu and (match := re.match(r"sm(\d+)", name)) and sm != int(match[1]):
        section.wrong("sm", f"must be the {match[1]} of the platform's name, found {sm}")
    if on_gpu and "slurm" not in section:
        section.wrong("slurm", "is missing: expected {partition: ..., gres: 'gpu:...:1'}")
    platform = Platform(
        name=name,
        sm=sm,
        system=section.text("system"),
        gpu=section.text("gpu") if on_gpu else None,
        slurm=_slurm(section.section("slurm")) if "slurm" in section else None,
        peaks=_peaks(section.section("peaks")),
        limits=_limits(section.section("limits")) if "limits" in section else Limits(),
        runtime=section.choice("runtime", ["host", "image"], None),
    )
    section.done()
    return platform


def _slurm(section: Section) -> Slurm:
    gres = section.text("gres")
    if gres and not GRES.match(gres):
        section.wrong("gres", f"expected gpu:<type>:<count>, as in gpu:h200:1, found {gres!r}")
    slurm = Slurm(
        partition=section.text("partition"),
        gres=gres,
        cpus=section.integer("cpus", 8, minimum=1),
        mem_mb=section.integer("mem_mb", 65536, minimum=1024),
        account=section.text("account", None),
        qos=section.text("qos", None),
        max_minutes=section.integer("max_minutes", None, minimum=1),
    )
    section.done()
    return slurm


def _peaks(section: Section) -> Peaks:
    bandwidth = section.number("bandwidth_gbs", above=0)
    flops = section.section("tflops")
    peaks = Peaks(bandwidth * 1e9, {dtype: flops.number(dtype, above=0) * 1e12 for dtype in flops})
    section.done()
    return peaks


def _limits(section: Section) -> Limits:
    fields = {
        op: {field: tuple(values.raw(field)) for field in values if _is_list(values, field)}
        for op, values in section.section("fields", None).sections()
    }
    gflop = section.number("gflop", None, above=0)
    mbytes = section.number("mbytes", None, above=0)
    limits = Limits(
        models=tuple(section.texts("models")) if "models" in section else None,
        flops=gflop * 1e9 if gflop is not None else None,
        bytes=mbytes * 1e6 if mbytes is not None else None,
        fields=fields,
    )
    section.done()
    return limits


def _is_list(section: Section, key: str) -> bool:
    if isinstance(section.raw(key), list):
        return True
    section.wrong(key, "expected a list of values")
    return False
