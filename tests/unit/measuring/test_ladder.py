"""Graph, else queue, else CUPTI: the row says which, and a bad host never passes (FIELD M2, M3)."""

from __future__ import annotations

import pytest
import torch
from opatlas.measuring import cuda, cupti
from opatlas.measuring.call import Call
from opatlas.measuring.cuda import CudaDevice
from opatlas.measuring.cupti import Activity
from opatlas.measuring.errors import InvalidMeasurement
from opatlas.measuring.graphs import NotCaptured
from opatlas.measuring.pool import Pool
from opatlas.measuring.settings import Settings
from opatlas.measuring.work import Work
from support.timer import FakeTimer, burst


class FakeGpu(CudaDevice):
    """The device without a GPU: capture, bursts and CUPTI are scripted."""

    def __init__(self, bursts, captures):
        self.settings = Settings()
        self.torch_device = torch.device("cpu")
        self.cache_bytes = 60 << 20
        self._pool = Pool(self.torch_device, lambda: 1 << 40)
        self._timer = FakeTimer(bursts)
        self._graph_memory = None
        self._graph_overhead_s = self._queue_overhead_s = 1e-6
        self._captures = iter(captures)

    def _evict(self):
        pass

    def _captured(self, call, rotation, call_s):
        if not next(self._captures):
            raise NotCaptured("operation not permitted when stream is capturing")
        return Work("cuda_graph", [lambda: None], [1], 1e-6, kernels=("gemm",))


@pytest.fixture
def call():
    x = torch.randn(64, 64)
    return Call(lambda i: x @ x)


@pytest.fixture
def cupti_sees(monkeypatch):
    def sees(*kernels):
        for module in (cuda, cupti):
            monkeypatch.setattr(module, "record", lambda run: [list(kernels)] * 10)

    return sees


def test_each_row_says_how_it_was_timed(call, cupti_sees):
    cupti_sees(Activity(0, 9000, "eager"))
    device = FakeGpu([burst()], [True, True, False, True])
    rows = [device.measure(call) for _ in range(4)]
    methods = [row.timing_method for row in rows]
    assert methods == ["cuda_graph", "cuda_graph", "blocked_eager", "cuda_graph"]
    assert "not_captured" not in rows[0].notes
    assert rows[2].notes["not_captured"].startswith("operation not permitted")
    assert rows[2].kernels == ("eager",)


def test_what_outruns_the_queue_is_traced(call, cupti_sees):
    cupti_sees(Activity(0, 9000, "a"), Activity(9100, 20000, "b"))
    row = FakeGpu([burst(hidden=False)], [False]).measure(call)
    assert (row.timing_method, row.latency) == ("cupti", pytest.approx(0.02))


def test_what_waits_for_the_host_has_no_latency(call, cupti_sees):
    cupti_sees(Activity(0, 1000, "a"), Activity(50_000, 51_000, "b"))
    with pytest.raises(InvalidMeasurement, match="host_bound"):
        FakeGpu([burst(hidden=False)], [False]).measure(call)


def test_a_broken_call_is_not_taken_for_one_that_cannot_be_captured():
    def run(i):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    with pytest.raises(RuntimeError, match="illegal memory access"):
        FakeGpu([burst()], [True]).measure(Call(run))
