"""The CPU device end to end, on tiny calls."""

from __future__ import annotations

import json

import pytest
import torch
from opatlas.measuring.call import Call
from opatlas.measuring.cpu import CpuDevice, claim_cores
from opatlas.measuring.device import open_device, require_memory
from opatlas.measuring.errors import InvalidMeasurement, KernelLimit
from opatlas.measuring.settings import Settings


@pytest.fixture(scope="module")
def device():
    return CpuDevice(Settings(cpu_budget_s=0.02))


def test_a_platform_without_sm_is_the_cpu(device):
    assert isinstance(open_device(Settings(), {"sm": None}), CpuDevice)


def test_very_short_calls_are_batched_and_copies_rotate(device):
    size = 4 * 64 * 64
    copies = device.copies(size)
    weights = device.normal((copies, 64, 64), torch.float32, 0.02)
    x, used = device.normal((1, 64), torch.float32), set()

    def run(i):
        used.add(i % copies)
        return x @ weights[i % copies]

    row = device.measure(Call(run, copies, size))
    assert row.timing_method == "cpu_perf_counter"
    assert row.notes["calls_per_sample"] > 1
    assert row.notes["copies"] == copies
    assert row.notes["bytes_between_uses"] == (copies - 1) * size
    assert row.stop_reason in ("converged", "budget", "max_samples")
    assert row.samples >= Settings().min_samples
    assert row.latency > 0
    assert row.latency_ci >= 0
    assert len(used) > 100


def test_copies_are_cold_within_a_margin(device):
    size = 1 << 20
    assert (device.copies(size) - 1) * size >= 2 * device.cache_bytes
    assert device.copies(0) == 1


def test_zeros_are_refused_unless_the_call_says_so(device):
    zeros = torch.zeros(64, 64)
    with pytest.raises(InvalidMeasurement, match="constant_input"):
        device.measure(Call(lambda i: zeros @ zeros))
    row = device.measure(Call(lambda i: zeros @ zeros, inputs="zeros"))
    assert row.notes["inputs"] == "zeros"


def test_a_remembered_result_is_not_timed(device):
    x, memory = device.normal((64, 64), torch.float32), {}

    def run(i):
        if x.data_ptr() not in memory:
            memory[x.data_ptr()] = x @ x
        return memory[x.data_ptr()]

    with pytest.raises(InvalidMeasurement, match="no_write"):
        device.measure(Call(run))


def test_facts_are_plain_values(device):
    facts = json.loads(json.dumps(device.facts()))
    assert facts["threads"] == 1
    assert facts["cache_bytes"] > 0


def test_two_processes_get_different_cores():
    first, claims = claim_cores(1)
    second, _ = claim_cores(1)
    if claims and len(first | second) > 1:
        assert first != second


def test_what_does_not_fit_is_refused_with_its_arithmetic(device):
    with pytest.raises(KernelLimit, match=r"weights 1,000,000,000,000,000 \+ x 5 = "):
        require_memory(device, weights=10**15, x=5)
    require_memory(device, weights=1)
