"""The torch backend's ops on the CPU: right values, measured rows, refusals."""

from __future__ import annotations

import importlib

import pytest
import torch
from opatlas.backends.torch import runtime
from opatlas.measuring.errors import Unsupported
from opatlas.measuring.settings import Settings
from opatlas.ops.ids import parse_id
from opatlas.ops.moe import inputs

ATTENTION = "dtype=float32/kv_dtype=float32/heads=4/kv_heads=2/head_dim=32"
MOE = "moe/dtype=float32/hidden=64/inter=96/topk=2/experts=8"


@pytest.fixture(scope="module")
def device():
    return runtime.device(Settings(cpu_budget_s=0.01), {"sm": None})


@pytest.fixture(autouse=True)
def _fresh(device, monkeypatch):
    monkeypatch.setattr(device, "copies", lambda read, held=0: 2)
    monkeypatch.setattr(device, "sets", lambda size: 3)
    yield
    device.reset()


def runner_call(case_id, device):
    op, case = parse_id(case_id)
    runner = importlib.import_module(f"opatlas.backends.torch.{op}")
    built = runner.build(case, device)
    return runner, built, case, runner.call(built, case, device)


@pytest.mark.parametrize(
    ("case_id", "source"),
    [
        ("gemm/dtype=float32/m=3/n=32/k=64", "torch.nn.functional.linear"),
        ("gemm/dtype=bfloat16/m=3/n=32/k=64", "torch.nn.functional.linear"),
        (f"attention_context/{ATTENTION}/window=0/batch=2/isl=16", "torch.sdpa."),
        (f"attention_context/{ATTENTION}/window=4/batch=2/isl=16", "torch.sdpa."),
        (f"attention_generation/{ATTENTION}/window=0/batch=2/kv_len=16", "torch.sdpa."),
        (f"{MOE}/tp=1/ep=1/distribution=balanced/tokens=5", "torch.matmul"),
    ],
)
def test_a_case_gives_a_row(device, case_id, source):
    runner, built, case, call = runner_call(case_id, device)
    row = device.measure(call)
    assert row.latency > 0
    assert row.timing_method == "cpu_perf_counter"
    assert runner.kernel_source(built, case).startswith(source)


@pytest.fixture
def seen(device, monkeypatch):
    """The tensors that a runner asked the device for, in order."""
    asked = []
    original = device.normal
    monkeypatch.setattr(device, "normal", lambda *a, **k: asked.append(original(*a, **k)) or asked[-1])
    return asked


def reference_attention(q, k, v, hidden):
    """q [b, h, n, d] over k, v [b, kv, m, d] in float64; `hidden` is true where nothing is attended."""
    group = q.shape[1] // k.shape[1]
    k, v = (t.double().repeat_interleave(group, 1) for t in (k, v))
    scores = q.double() @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    return scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v


@pytest.mark.parametrize("window", [0, 4, 64])
def test_context_attention_is_causal_and_windowed(device, seen, window):
    *_, call = runner_call(f"attention_context/{ATTENTION}/window={window}/batch=2/isl=16", device)
    age = torch.arange(16)[:, None] - torch.arange(16)
    hidden = (age < 0) | ((age >= window) if window else False)
    for i in range(4):
        q, k, v = (t[i % 3].transpose(1, 2) for t in seen)
        expected = reference_attention(q, k, v, hidden)
        torch.testing.assert_close(call.run(i).double(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("window", "kept"), [(0, 16), (4, 4), (64, 16)])
def test_decode_attention_reads_its_window_of_the_cache(device, seen, window, kept):
    *_, call = runner_call(f"attention_generation/{ATTENTION}/window={window}/batch=3/kv_len=16", device)
    queries, caches = seen
    for i in range(6):
        q = queries[i % 3].transpose(1, 2)
        k, v = caches[i % 2].transpose(2, 3)
        expected = reference_attention(q, k, v, torch.zeros(1, kept, dtype=torch.bool))
        torch.testing.assert_close(call.run(i).double(), expected, rtol=1e-4, atol=1e-5)
    assert call.bytes_per_copy == 2 * 3 * kept * 2 * 32 * 4


@pytest.mark.parametrize("distribution", ["balanced", "power_law_1.2"])
@pytest.mark.parametrize(("tp", "ep"), [(1, 1), (2, 2), (1, 4)])
def test_moe_computes_the_generated_assignment(device, seen, tp, ep, distribution):
    case_id = f"{MOE}/tp={tp}/ep={ep}/distribution={distribution}/tokens=11"
    _, built, case, call = runner_call(case_id, device)
    assigned = torch.from_numpy(inputs.assignment(case))
    for i in (0, 1, 5):
        x = seen[-1][i % 3]
        router, up, down = (t[i % 2].double() for t in (built.router, built.up, built.down))
        lift = inputs.LIFT * case.hidden**0.5
        logits = (x.double() @ router.t()).gather(1, assigned) + lift
        gates = logits.softmax(-1)
        expected = torch.zeros(case.tokens, case.hidden, dtype=torch.float64)
        for token in range(case.tokens):
            for slot, expert in enumerate(assigned[token].tolist()):
                if expert < inputs.local_experts(case):
                    gate, value = (x[token].double() @ up[expert]).chunk(2)
                    hidden = torch.nn.functional.silu(gate) * value
                    expected[token] += gates[token, slot] * (hidden @ down[expert])
        torch.testing.assert_close(call.run(i).double(), expected, rtol=1e-3, atol=1e-4)


def test_moe_of_one_token_is_cold_too(device, monkeypatch):
    asked = []
    monkeypatch.setattr(device, "copies", lambda read, held=0: asked.append(read) or 2)
    *_, call = runner_call(f"{MOE}/tp=1/ep=2/distribution=balanced/tokens=1", device)
    assert asked == [4 * (3 * 96 * 64 + 8 * 64)]
    assert call.bytes_per_copy >= asked[0]


@pytest.mark.parametrize(
    "case_id",
    [
        "gemm/dtype=nvfp4/m=1/n=32/k=64",
        f"attention_context/{ATTENTION.replace('kv_dtype=float32', 'kv_dtype=fp8')}/window=0/batch=1/isl=8",
        f"attention_generation/{ATTENTION}/window=0/batch=1/kv_len=8/variant=sinks",
        f"{MOE}/tp=1/ep=1/distribution=balanced/tokens=5/routing=sigmoid",
        f"{MOE.replace('float32', 'fp8')}/tp=1/ep=1/distribution=balanced/tokens=5",
    ],
)
def test_what_plain_pytorch_has_not_is_unsupported(device, case_id):
    with pytest.raises(Unsupported):
        runner_call(case_id, device)


def test_versions_are_exact():
    versions = runtime.versions()
    assert versions["framework"] == versions["torch"] == torch.__version__
