"""Random numbers drawn once and handed out by slicing, so that a new case costs almost nothing."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch

TILE = 1 << 22
"""Numbers really drawn per pool; the rest of a pool repeats them."""

ALIGN = 512
"""Slices start at multiples of so many elements: no kernel sees a worse alignment than malloc's."""

SEED = 20240229


class Pool:
    """One block of normal numbers per (dtype, scale), sliced from the front.

    Slices are disjoint until `rewind`, which frees all of them but those asked for before the first
    rewind after a `clear`: the weights of a build stay, the activations of a case go.
    """

    def __init__(self, torch_device: Any) -> None:
        self._device = torch_device
        self._blocks: dict[tuple[Any, float], Any] = {}
        self._used: dict[tuple[Any, float], int] = {}
        self._kept: dict[tuple[Any, float], int] | None = None

    def normal(self, shape: Sequence[int], dtype: Any, scale: float) -> Any:
        key = (dtype, scale)
        size = prod(shape)
        start = self._used.get(key, 0)
        block = self._blocks.get(key)
        if block is None or start + size > block.numel():
            # Slices of the old block stay valid: they hold its memory.
            have = 0 if block is None else block.numel()
            block = self._fill(max(size, min(2 * have, have + (1 << 29)), TILE), dtype, scale)
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

    def drop(self) -> None:
        """Gives the memory back."""
        self.clear()
        self._blocks = {}

    @property
    def bytes(self) -> int:
        return sum(block.numel() * block.element_size() for block in self._blocks.values())

    def _fill(self, size: int, dtype: Any, scale: float) -> Any:
        generator = torch.Generator(self._device).manual_seed(SEED)
        tile = torch.randn(TILE, generator=generator, device=self._device).mul_(scale)
        if dtype.is_floating_point and dtype.itemsize == 1:
            limit = torch.finfo(dtype).max
            tile.clamp_(-limit, limit)
        tile = tile.to(dtype)
        tiles = -(-size // TILE)
        block = torch.empty(tiles, TILE, dtype=dtype, device=self._device)
        block.copy_(tile.expand(tiles, TILE))
        return block.view(-1)
