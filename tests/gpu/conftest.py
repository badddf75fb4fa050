"""Tests that need a GPU: skipped, with the reason, where there is none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from opatlas.measuring.settings import Settings


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if torch.cuda.is_available():
        return
    skip = pytest.mark.skip(reason="needs an NVIDIA GPU, and PyTorch sees none")
    for item in items:
        if "tests/gpu/" in item.path.as_posix():
            item.add_marker(skip)


@pytest.fixture(scope="session")
def opened() -> object:
    from opatlas.measuring.cuda import CudaDevice

    return CudaDevice(Settings())


@pytest.fixture
def device(opened: object) -> Iterator[object]:
    yield opened
    opened.reset()  # type: ignore[attr-defined]
