"""Calls that do not do what they are timed for are found (FIELD M1, M10, M14)."""

from __future__ import annotations

import pytest
import torch
from opatlas.measuring.errors import InvalidMeasurement
from opatlas.measuring.honesty import poison, require_recomputed, run_guarded, sampled


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


def test_an_honest_call_passes():
    x, w = normal(32, 64), normal(16, 64)

    def run():
        return torch.nn.functional.linear(x, w)

    out = run_guarded(run)
    require_recomputed(sampled(out), out, run)


def test_a_replay_that_does_nothing_is_found():
    out = normal(64)
    with pytest.raises(InvalidMeasurement, match="no_write"):
        require_recomputed(sampled(out), out, lambda: out)


def test_a_replay_that_writes_a_part_is_found():
    out = normal(64, 64)
    whole = out.clone()

    def again():
        out[:32] = whole[:32]
        return out

    with pytest.raises(InvalidMeasurement, match="no_write"):
        require_recomputed(sampled(whole), out, again)


def test_a_replay_that_lacks_an_earlier_kernel_is_found():
    """The last kernel runs, on an intermediate result that nobody computed."""
    x, out = normal(64), torch.empty(64)
    expected = sampled(x * 2 + 1)

    def again():
        return out.copy_(torch.zeros(64) + 1)

    with pytest.raises(InvalidMeasurement, match="other values"):
        require_recomputed(expected, out, again)


def test_a_call_that_remembers_by_address_is_found():
    x, memory = normal(64, 64), {}

    def run():
        if x.data_ptr() not in memory:
            memory[x.data_ptr()] = x @ x
        return memory[x.data_ptr()]

    out = run()
    with pytest.raises(InvalidMeasurement, match="no_write"):
        require_recomputed(sampled(out), out, run)


def test_nan_and_nothing_to_look_at_are_found():
    out = normal(8)
    with pytest.raises(InvalidMeasurement, match="not finite"):
        require_recomputed(sampled(out), out, lambda: torch.full((8,), torch.nan))
    with pytest.raises(InvalidMeasurement, match="no tensor"):
        require_recomputed([], None, lambda: None)


@pytest.mark.parametrize(
    "dtype",
    [torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.int32, torch.int8],
)
def test_poison_is_seen_in_every_format(dtype):
    out = (normal(300) * 10).to(dtype)
    require_recomputed(sampled(out), out.clone(), lambda: out)
    poisoned = out.clone()
    poison(poisoned)
    with pytest.raises(InvalidMeasurement, match="no_write"):
        require_recomputed(sampled(out), out.clone(), lambda: poisoned)


def test_tuples_are_checked_whole():
    out = normal(8), normal(8)
    expected = sampled(out)
    with pytest.raises(InvalidMeasurement, match="no_write"):
        require_recomputed(expected, out, lambda: (out[0].copy_(expected[0]), out[1]))


@pytest.mark.parametrize("constant", [torch.zeros(64, 64), torch.full((64, 64), 0.5)])
def test_constant_inputs_are_refused(constant):
    with pytest.raises(InvalidMeasurement, match=r"constant_input.*64x64"):
        run_guarded(lambda: normal(64, 64) @ constant)


def test_a_constant_column_is_not_a_constant_input():
    table = torch.zeros(4096, 8)
    table[:, 0] = 1.0
    run_guarded(lambda: table + normal(4096, 8))


def test_what_may_be_constant():
    """Scales, integer tables, buffers that are written, and what the call makes itself."""
    x, scale, table = normal(64, 64), torch.ones(()), torch.zeros(64, dtype=torch.int64)
    out = torch.zeros(64, 64)

    def run():
        torch.mm(x, x, out=out)
        return (out * scale)[table] + torch.zeros(64, 64)

    run_guarded(run)
