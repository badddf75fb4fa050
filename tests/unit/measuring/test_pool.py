"""Slices of the random pool."""

from __future__ import annotations

import pytest
import torch
from opatlas.measuring.pool import TILE, Pool


@pytest.fixture
def pool():
    return Pool(torch.device("cpu"), lambda: 1 << 40)


def places(*tensors):
    return [(t.data_ptr(), t.data_ptr() + t.numel() * t.element_size()) for t in tensors]


def overlap(a, b):
    (a0, a1), (b0, b1) = places(a, b)
    return a0 < b1 and b0 < a1


def test_values_have_the_asked_spread(pool):
    for dtype in (torch.float32, torch.bfloat16):
        values = pool.normal((300, 1000), dtype, 0.02).float()
        assert values.std().item() == pytest.approx(0.02, rel=0.02)
        assert values.mean().abs().item() < 0.001
    eight_bits = pool.normal((300, 1000), torch.float8_e4m3fn, 100.0).float()
    assert eight_bits.isfinite().all()
    assert eight_bits.abs().max() == 448


def test_slices_of_a_case_are_disjoint_and_cases_share(pool):
    weights = pool.normal((64, 64), torch.float32, 1.0)
    x = pool.normal((64, 64), torch.float32, 1.0)
    assert not overlap(weights, x)
    pool.rewind()
    y, z = (pool.normal((64, 64), torch.float32, 1.0) for _ in range(2))
    assert not overlap(weights, y)
    pool.rewind()
    assert pool.normal((64, 64), torch.float32, 1.0).data_ptr() == y.data_ptr()
    assert not overlap(y, z)
    pool.clear()
    assert pool.normal((64, 64), torch.float32, 1.0).data_ptr() == weights.data_ptr()


def test_growth_leaves_older_slices_alone(pool):
    old = pool.normal((64, 64), torch.float32, 1.0)
    before = old.clone()
    new = pool.normal((2, TILE), torch.float32, 1.0)
    assert not overlap(old, new)
    assert torch.equal(old, before)
    assert not torch.equal(new[0, :64], new[0, 64:128])


def test_free_bytes_are_what_is_not_handed_out(pool):
    pool.normal((TILE // 2,), torch.float32, 1.0)
    assert pool.bytes == 4 * TILE
    assert pool.free_bytes == pytest.approx(2 * TILE, abs=4096)
    pool.clear()
    assert pool.free_bytes == pool.bytes


def test_unused_blocks_go_when_memory_is_short():
    pool = Pool(torch.device("cpu"), lambda: 0)
    pool.normal((64,), torch.float32, 1.0)
    pool.clear()
    pool.normal((64,), torch.bfloat16, 1.0)
    assert pool.bytes == 2 * TILE


def test_neither_neighbours_nor_other_pools_hold_the_same_numbers(pool):
    """Round sizes must not make keys equal to values, or activations to weights."""
    keys, values = pool.normal((2, 1 << 22), torch.float32, 1.0)
    assert (keys == values).float().mean() < 0.01
    weights, activations = (pool.normal((1 << 16,), torch.float32, scale) for scale in (0.02, 1.0))
    pair = torch.stack([weights, activations])
    assert torch.corrcoef(pair)[0, 1].abs() < 0.02


def test_the_same_numbers_every_time():
    first, second = (
        Pool(torch.device("cpu"), lambda: 1 << 40).normal((100,), torch.float32, 1.0) for _ in range(2)
    )
    assert torch.equal(first, second)
