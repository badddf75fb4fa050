"""config/frameworks.yaml: which runtime the rows of a (backend, version, op) are measured in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.version import InvalidVersion, Version

from opatlas.config.document import Section
from opatlas.errors import Problems

IMAGE = re.compile(r"^(?P<repository>[^@\s]+)@(?P<digest>sha256:[0-9a-f]{64})$")
NAME = re.compile(r"^[a-z][a-z0-9_]*$")


@dataclass(frozen=True)
class Runtime:
    """Where a job runs: an image named by digest, or the host's own environment (no image)."""

    image: str | None = None
    tag: str | None = None

    @property
    def digest(self) -> str | None:
        return self.image.partition("@")[2] if self.image else None

    @property
    def identity(self) -> str:
        return self.digest or "host"


@dataclass(frozen=True)
class Pin:
    """One runtime of one version and the ops it is for (None: every op no other pin names)."""

    backend: str
    version: str
    runtime: Runtime
    ops: tuple[str, ...] | None
    platforms: tuple[str, ...] | None


@dataclass(frozen=True)
class Frameworks:
    pins: tuple[Pin, ...]

    def backends(self) -> list[str]:
        return list(dict.fromkeys(pin.backend for pin in self.pins))

    def versions(self, backend: str) -> list[str]:
        """Pinned versions of a backend, in the order of PEP 440."""
        return sorted({p.version for p in self.pins if p.backend == backend}, key=Version)

    def runtime(self, backend: str, version: str, op: str) -> Runtime | None:
        """The runtime of an op at this version; None when the op is pinned elsewhere."""
        own = [p for p in self.pins if p.backend == backend and p.version == version]
        for pin in own:
            if pin.ops is not None and op in pin.ops:
                return pin.runtime
        named = {op for p in self.pins if p.backend == backend and p.ops for op in p.ops}
        rest = [pin for pin in own if pin.ops is None]
        return rest[0].runtime if rest and op not in named else None


def load(path: Path, name: str, problems: Problems) -> Frameworks:
    """Reads the pins; every mistake goes to `problems`."""
    pins: list[Pin] = []
    top = Section.read(path, problems, name)
    for backend, versions in top.sections():
        if not NAME.match(backend):
            top.wrong(backend, "a backend's name is of lower-case letters, digits and _")
        for version in versions:
            for entry in _entries(versions, version):
                pins.append(_pin(backend, version, entry, versions))
    _check_ops(pins, top)
    return Frameworks(tuple(pins))


def _entries(versions: Section, version: str) -> Iterator[Section]:
    try:
        parsed = Version(version)
        if parsed.local:
            versions.wrong(
                version, f"name the public version, {parsed.public}, without the suffix +{parsed.local}"
            )
        elif str(parsed) != version:
            versions.wrong(version, f"write the version in its normal form, {parsed}")
    except InvalidVersion:
        versions.wrong(version, "is not a version (PEP 440), as in 1.3.0rc20")
    if isinstance(versions.raw(version), list):
        yield from versions.records(version)
    else:
        yield versions.section(version)


def _pin(backend: str, version: str, entry: Section, versions: Section) -> Pin:
    image = entry.text("image", None)
    tag = entry.text("tag", None)
    runtime = entry.choice("runtime", ["image", "host"], "image")
    ops = tuple(entry.texts("ops")) if "ops" in entry else None
    platforms = tuple(entry.texts("platforms")) if "platforms" in entry else None
    entry.done()
    expected = "expected image: repository@sha256:<64 hex digits>"
    if runtime == "host":
        if image:
            entry.wrong("image", "a pin with runtime: host has no image")
    elif not image:
        versions.wrong(version, f"has no image: {expected}, or runtime: host")
    elif "@" not in image:
        entry.wrong("image", f"{expected}, found {image!r} (a tag can change under the same name)")
    elif not IMAGE.match(image):
        entry.wrong("image", f"{expected}, found {image!r}")
    elif ":" in image.partition("@")[0].rpartition("/")[2]:
        entry.wrong("image", f"name repository@digest without a tag, found {image!r}; a tag goes under `tag`")
    return Pin(backend, version, Runtime(image, tag) if image else Runtime(), ops, platforms)


def _check_ops(pins: list[Pin], top: Section) -> None:
    seen: set[tuple[str, str, str]] = set()
    for pin in pins:
        for op in pin.ops or ("(every other op)",):
            if (pin.backend, pin.version, op) in seen:
                top.wrong(
                    f"{pin.backend}.{pin.version}", f"{op} has two runtimes: one image per op and version"
                )
            seen.add((pin.backend, pin.version, op))
