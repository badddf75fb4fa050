"""Block tables and slots: each sequence has its own blocks, and new tokens go to the ends."""

from __future__ import annotations

import pytest
import torch
from opatlas.backends.vllm.paging import Pages


def pages(**changes):
    given = {"copies": 3, "batch": 4, "length": 100, "new": 1, "block": 16, "skipped": 0, "longest": 1000}
    return Pages(**{**given, **changes})


def test_sizes():
    whole = pages()
    assert (whole.kept, whole.blocks, whole.table_width) == (7, 1 + 3 * 4 * 7, 64)
    assert pages(length=96).kept == 6
    windowed = pages(length=1000, skipped=1000 - 128)
    assert (windowed.gone, windowed.kept) == (54, 9)
    assert pages(block=256, longest=131072).table_width == 512
    assert pages(longest=131072).table_width == 8192


@pytest.mark.parametrize(("new", "skipped"), [(1, 0), (1, 37), (100, 0)])
def test_blocks_are_each_sequences_own(new, skipped):
    made = pages(new=new, skipped=skipped)
    tables, slots = made.tables(torch.device("cpu"))
    held = tables[:, :, made.gone : made.gone + made.kept]
    assert sorted(held.flatten().tolist()) == list(range(1, made.blocks))
    outside = tables.sum() - held.sum()
    assert outside == 0  # the null block
    assert slots.shape == (3, 4 * new)
    assert len(set(slots.flatten().tolist())) == slots.numel()
    # Slots in the order of tokens: position p of sequence b of copy c is p % 16 of block p // 16.
    for copy, sequence, position in ((0, 0, 99), (2, 3, 99)):
        slot = int(slots[copy].view(4, new)[sequence, -1])
        assert slot == int(tables[copy, sequence, position // 16]) * 16 + position % 16


def test_the_order_is_scattered_and_the_same_each_time():
    tables, _ = pages(length=1000).tables(torch.device("cpu"))
    again, _ = pages(length=1000).tables(torch.device("cpu"))
    assert torch.equal(tables, again)
    first = tables[0, 0, : pages(length=1000).kept]
    assert (first[1:] - first[:-1] != 1).float().mean() > 0.9
