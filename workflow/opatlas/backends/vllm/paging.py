"""Where the tokens of sequences lie in a paged KV cache. Needs PyTorch, no framework."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

TABLE_ALIGNMENT = 128
"""Tokens to a multiple of which rows of a block table are rounded up: vllm/v1/worker/gpu/model_runner.py,
GPUModelRunner.initialize_kv_cache."""


class Pages(NamedTuple):
    """`copies` batches of sequences of `length` tokens, `new` of them new, in blocks of their own.

    A block holds `block` tokens; the first `skipped` tokens are no longer held, since no later token
    sees them. Block 0 is the null block, which stands for blocks that are gone.
    """

    copies: int
    batch: int
    length: int
    new: int
    block: int
    skipped: int
    longest: int

    @property
    def gone(self) -> int:
        """Blocks of a sequence that are not held any more."""
        return self.skipped // self.block

    @property
    def kept(self) -> int:
        """Blocks of a sequence that are held."""
        return _quotient(self.length, self.block) - self.gone

    @property
    def blocks(self) -> int:
        return 1 + self.copies * self.batch * self.kept

    @property
    def table_width(self) -> int:
        """Blocks of the longest sequence of an engine, rounded up."""
        aligned = max(1, TABLE_ALIGNMENT // self.block)
        return _quotient(_quotient(self.longest, self.block), aligned) * aligned

    @property
    def table_bytes(self) -> int:
        """Bytes of the block tables and of what it takes to make them."""
        return 4 * self.copies * self.batch * self.table_width + 8 * self.blocks

    def tables(self, place: Any) -> tuple[Any, Any]:
        """Block tables [copies, batch, width] and slots of the new tokens [copies, batch * new].

        Blocks of a sequence lie scattered, as they do in an engine that has been serving for a while
        (vllm/v1/core/block_pool.py, BlockPool.get_new_blocks); the order is the same each time. What the
        tensors hold is what vllm/v1/worker/gpu/block_table.py, BlockTables.gather_block_tables and
        BlockTables.compute_slot_mappings, make of it.
        """
        generator = torch.Generator(place).manual_seed(self.blocks)
        order = torch.randperm(self.blocks - 1, generator=generator, dtype=torch.int32, device=place) + 1
        tables = torch.zeros(self.copies, self.batch, self.table_width, dtype=torch.int32, device=place)
        held = slice(self.gone, self.gone + self.kept)
        tables[:, :, held] = order.view(self.copies, self.batch, self.kept)
        positions = torch.arange(self.length - self.new, self.length, device=place)
        slots = tables[:, :, positions // self.block].long() * self.block + positions % self.block
        return tables, slots.view(self.copies, -1)


def _quotient(value: int, divisor: int) -> int:
    """Rounded up."""
    return -(-value // divisor)
