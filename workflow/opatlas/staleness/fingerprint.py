"""Fingerprints: the identity of everything that may change a row, a shard, a dataset."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from opatlas.config.datasets import Dataset
from opatlas.config.frameworks import Runtime
from opatlas.harness.ticket import Key
from opatlas.interface.uses import DECLARATION
from opatlas.measuring.settings import Settings
from opatlas.staleness import code

# Digits of a fingerprint that go into file names; manifests hold all of them.
SHORT = 16


@dataclass(frozen=True)
class Context:
    """Everything beside the case itself that may change the latency of an op's rows."""

    parts: Mapping[str, Any]

    @property
    def fingerprint(self) -> str:
        return digest(self.parts)

    @property
    def code(self) -> Mapping[str, str]:
        modules: Mapping[str, str] = self.parts["code"]
        return modules


def context(dataset: Dataset, op: str, runtime: Runtime, measure: Settings) -> Context:
    """The context of an op's rows in a dataset: code, runtime, hardware, measurement settings."""
    return Context(
        {
            "backend": dataset.backend,
            "op": op,
            "code": code.worker_modules(dataset.backend, op) if code.has_runner(dataset.backend, op) else {},
            "runtime": runtime.digest or host_versions(dataset.backend, dataset.version),
            "version": dataset.version,
            "sm": dataset.platform.sm,
            "gpu": dataset.platform.gpu,
            "measure": measure.to_dict(),
        }
    )


@cache
def host_versions(backend: str, version: str) -> dict[str, str]:
    """Exact versions of the framework and of torch as installed here, read without importing them.

    Where the framework is not installed (planning on a laptop) the pin's version stands for it.
    """
    versions = {}
    for distribution in dict.fromkeys((backend, "torch")):
        try:
            versions[distribution] = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            if distribution == backend:
                versions[distribution] = version
    return versions


def shard_fingerprint(context: Context, keys: Iterable[Key]) -> str:
    """The identity of a shard: its context and the set of its cases, in any order."""
    sha = hashlib.sha256(context.fingerprint.encode())
    for key in sorted(keys):
        sha.update(f"\n{key.case}#{key.generation}".encode())
    return sha.hexdigest()


def digest(value: Any) -> str:
    """sha256 over a JSON value in its canonical form."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def interface_digest(dataset: Dataset, runtime: Runtime | None) -> str | None:
    """The identity of a backend's uses of its framework and of the framework's runtime; None where it
    declares no uses."""
    folder = code.FOLDER / "backends" / dataset.backend
    if runtime is None or not (folder / DECLARATION).is_file():
        return None
    files = [*sorted(folder.glob("*.py")), *sorted((code.FOLDER / "interface").glob("*.py"))]
    parts = {
        "runtime": runtime.digest or host_versions(dataset.backend, dataset.version),
        # Comments cite the framework too, so whole files count.
        "files": {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files},
    }
    return digest(parts)[:SHORT]
