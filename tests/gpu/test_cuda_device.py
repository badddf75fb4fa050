"""The CUDA device against calls whose faults are known."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
import torch
from opatlas.measuring.call import Call
from opatlas.measuring.cuda import CudaDevice
from opatlas.measuring.errors import InvalidMeasurement
from opatlas.measuring.settings import Settings


@pytest.fixture
def linear(device):
    """A bf16 product with 8 MB of weights."""
    n = k = 2048
    weights = device.normal((device.copies(2 * n * k), n, k), torch.bfloat16, 0.02).unbind(0)
    x = device.normal((16, k), torch.bfloat16)
    return Call(lambda i: torch.nn.functional.linear(x, weights[i % len(weights)]), len(weights), 2 * n * k)


def test_a_plain_call_is_timed_by_graph_and_agrees_with_cupti(device, linear):
    measured, spans = device.cross_check(linear)
    assert measured.timing_method == "cuda_graph"
    assert len(measured.kernels) >= 1
    assert measured.notes["bytes_between_uses"] >= 2 * device.cache_bytes
    span = sorted(spans)
    assert measured.latency == pytest.approx(span[len(span) // 2], abs=1e-3)


def test_a_launch_that_capture_misses_is_found(device):
    """Work put on another stream by hand is done when called plainly, and is not in the graph."""
    x = device.normal((1024,), torch.float32)
    out = torch.empty_like(x)
    side = torch.cuda.Stream()

    def run(i):
        if torch.cuda.is_current_stream_capturing():
            scratch = x * 2  # something is captured, but not what writes the output
            return out if scratch is not None else scratch
        with torch.cuda.stream(side):
            out.copy_(x * 2)
        torch.cuda.current_stream().wait_stream(side)
        return out

    with pytest.raises(InvalidMeasurement, match="no_write"):
        device.measure(Call(run))


def test_a_call_that_remembers_its_result_is_found(device):
    x = device.normal((256, 256), torch.float32)
    memory = {}

    def run(i):
        if x.data_ptr() not in memory:
            memory[x.data_ptr()] = x @ x
        return memory[x.data_ptr()]

    with pytest.raises(InvalidMeasurement, match="no_write"):
        device.measure(Call(run))


def test_constant_inputs_are_refused_unless_named(device):
    zeros = torch.zeros(256, 256, device=device.torch_device)
    with pytest.raises(InvalidMeasurement, match="constant_input"):
        device.measure(Call(lambda i: zeros @ zeros))
    assert device.measure(Call(lambda i: zeros @ zeros, inputs="zeros")).notes["inputs"] == "zeros"


def test_nan_in_the_output_is_no_latency(device):
    x = device.normal((256, 256), torch.float32)
    with pytest.raises(InvalidMeasurement, match="no_write"):
        device.measure(Call(lambda i: (x @ x).log()))


def test_a_call_that_cannot_be_captured_is_queued_and_says_so(device):
    x = device.normal((4096, 4096), torch.bfloat16)
    host = torch.zeros(1).pin_memory()

    def run(i):
        # Pageable copies cannot be captured, but neither wait for the device.
        if torch.cuda.is_current_stream_capturing():
            raise RuntimeError("operation not permitted when stream is capturing")
        host.add_(1)
        return x @ x

    measured = device.measure(Call(run))
    assert measured.timing_method == "blocked_eager"
    assert measured.notes["not_captured"]
    assert len(measured.kernels) >= 1
    graphed = device.measure(Call(lambda i: x @ x))
    assert measured.latency == pytest.approx(graphed.latency, rel=0.05)


def test_a_call_that_waits_for_the_device_between_kernels_is_host_bound(device):
    x = device.normal((64, 64), torch.float32)

    def run(i):
        if (x @ x).sum().item() > 1e30:
            raise AssertionError
        time.sleep(0.001)
        return x @ x

    with pytest.raises(InvalidMeasurement, match="host_bound"):
        device.measure(Call(run))


def test_the_device_works_on_after_a_failed_capture(device, linear):
    x = device.normal((64, 64), torch.float32)
    with pytest.raises(InvalidMeasurement):
        device.measure(Call(lambda i: [time.sleep(0.001), x * x.sum().item() + x][1]))
    assert torch.randn(8, device=device.torch_device).isfinite().all()
    assert device.measure(linear).timing_method == "cuda_graph"


def test_small_weights_are_made_cold_by_eviction(device):
    n, k = 256, 512
    weights = device.normal((device.copies(2 * n * k), n, k), torch.bfloat16, 0.02).unbind(0)
    x = device.normal((1, k), torch.bfloat16)

    def run(i):
        return torch.nn.functional.linear(x, weights[i % len(weights)])

    cold = device.measure(Call(run, len(weights), 2 * n * k))
    warm = device.measure(Call(lambda i: run(0)))
    assert cold.notes["evicted"]
    assert cold.latency > warm.latency


def test_facts_name_the_device_and_its_state(device):
    facts = device.facts()
    assert facts["device"] == torch.cuda.get_device_name(0)
    assert facts["power_limit_w"] > 0
    assert facts["sm_clock_nominal_mhz"] <= 1.01 * facts["sm_clock_max_mhz"]
    assert 0 < facts["graph_overhead_us"] < 20


def test_another_process_on_the_device_is_an_error(device):
    device.check_alone()
    script = "import torch; torch.ones(1, device='cuda'); print('up', flush=True); input()"
    other = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert other.stdout.readline() == b"up\n"
        with pytest.raises(InvalidMeasurement, match="contended"):
            device.check_alone()
    finally:
        other.communicate(b"\n")


def test_a_settled_latency_can_be_asked_for(device):
    other = CudaDevice(Settings(sustained=True, sustained_s=0.5))
    x = other.normal((4096, 4096), torch.bfloat16)
    measured = other.measure(Call(lambda i: x @ x))
    assert measured.latency_sustained > 0.9 * measured.latency
    assert measured.sm_clock_sustained_mhz > 0
