"""Random numbers drawn once and handed out by slicing, so that a new case costs almost nothing."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch

TILE = 4_194_301
"""Numbers really drawn per pool; the rest of it repeats them. A prime, so that tensors of round sizes
that follow each other (keys and values, experts, copies) do not hold the same numbers."""

ALIGN = 512
"""Slices start at multiples of so many elements: no kernel sees a worse alignment than malloc's."""


class Pool:
    """One block of normal numbers per (dtype, scale), sliced from the front.

    Slices are disjoint until `rewind`, which frees all of them but those asked for before the first
    rewind after a `clear`: the weights of a build stay, the activations of a case go.
    """

    def __init__(self, torch_device: Any, unused_bytes: Callable[[], int]) -> None:
        self._device = torch_device
        self._unused_bytes = unused_bytes
        self._blocks: dict[tuple[Any, float], Any] = {}
        self._used: dict[tuple[Any, float], int] = {}
        self._kept: dict[tuple[Any, float], int] | None = None

    def normal(self, shape: Sequence[int], dtype: Any, scale: float) -> Any:
        key = (dtype, scale)
        size = prod(shape)
        start = self._used.get(key, 0)
        block = self._blocks.get(key)
        if block is None or start + size > block.numel():
            have = 0 if block is None else block.numel()
            # Slices of the old block stay valid: they hold its memory.
            self._blocks.pop(key, None)
            del block
            if 1.1 * size * dtype.itemsize > self._unused_bytes():
                self._drop_unused()
            block = self._fill(max(size, min(2 * have, have + (1 << 28)), TILE), dtype, scale)
            self._blocks[key] = block
            start = 0
            if self._kept is not None:
                self._kept[key] = 0
        self._used[key] = start + -(-size // ALIGN) * ALIGN
        return block[start : start + size].view(*shape)

    def rewind(self) -> None:
        if self._kept is None:
            self._kept = dict(self._used)
        self._used = dict(self._kept)

    def clear(self) -> None:
        self._used = {}
        self._kept = None

    @property
    def bytes(self) -> int:
        return sum(block.numel() * block.element_size() for block in self._blocks.values())

    @property
    def free_bytes(self) -> int:
        """What can still be sliced from the blocks, or given back."""
        used = sum(size * dtype.itemsize for (dtype, _), size in self._used.items())
        return max(0, int(self.bytes - used))

    def _drop_unused(self) -> None:
        self._blocks = {key: block for key, block in self._blocks.items() if self._used.get(key)}

    def _fill(self, size: int, dtype: Any, scale: float) -> Any:
        # Another seed for each pool: activations that resemble the weights would make odd products.
        seed = zlib.crc32(f"{dtype} {scale}".encode())
        generator = torch.Generator(self._device).manual_seed(seed)
        tile = torch.randn(TILE, generator=generator, device=self._device).mul_(scale)
        if dtype.is_floating_point and dtype.itemsize == 1:
            limit = torch.finfo(dtype).max
            tile.clamp_(-limit, limit)
        tile = tile.to(dtype)
        tiles = -(-size // TILE)
        block = torch.empty(tiles, TILE, dtype=dtype, device=self._device)
        block.copy_(tile.expand(tiles, TILE))
        return block.view(-1)
