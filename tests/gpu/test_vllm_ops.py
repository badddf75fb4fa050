"""vLLM's runners on a GPU with vLLM installed: they run, by graph, and compute what they should."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys

import pytest
import torch
from opatlas.harness import environment
from opatlas.ops.ids import parse_id

pytest.importorskip("vllm", reason="needs vLLM, and it is not installed")

SHAPE = "dtype=bfloat16/kv_dtype={}/heads=8/kv_heads=2/head_dim=128/window={}"

CASES = [
    "gemm/dtype=bfloat16/m=33/n=512/k=1024",
    "gemm/dtype=fp8/m=1/n=256/k=5120",
    "gemm/dtype=fp8/m=257/n=24/k=1024",
    "gemm/dtype=fp8_block/m=1/n=256/k=5120",
    "gemm/dtype=fp8_block/m=64/n=256/k=5120",
    "compute_scale/dtype=fp8/m=16/k=512",
    "scale_matrix/dtype=fp8/m=16/k=512",
    "encoder_attention/dtype=bfloat16/heads=4/head_dim=72/batch=3/isl=100",
    f"attention_context/{SHAPE.format('bfloat16', 0)}/batch=3/isl=100",
    f"attention_context/{SHAPE.format('fp8', 0)}/batch=3/isl=100",
    f"attention_context/{SHAPE.format('bfloat16', 32)}/batch=2/isl=128/variant=sinks",
    f"attention_generation/{SHAPE.format('bfloat16', 0)}/batch=3/kv_len=300",
    f"attention_generation/{SHAPE.format('fp8', 0)}/batch=4/kv_len=512",
    f"attention_generation/{SHAPE.format('bfloat16', 128)}/batch=4/kv_len=1024/variant=sinks",
    f"attention_generation/{SHAPE.format('bfloat16', 0)}/batch=1024/kv_len=64",
]


def runner_call(case_id, device):
    op, case = parse_id(case_id)
    runner = importlib.import_module(f"opatlas.backends.vllm.{op}")
    built = runner.build(case, device)
    return runner, built, case, runner.call(built, case, device)


@pytest.mark.parametrize("case_id", CASES)
def test_runs_by_graph(device, case_id):
    runner, built, case, call = runner_call(case_id, device)
    measured = device.measure(call)
    assert measured.timing_method == "cuda_graph"
    assert measured.latency > 0.0005
    assert runner.kernel_source(built, case)


@pytest.mark.parametrize("dtype", ["bfloat16", "fp8", "fp8_block"])
@pytest.mark.parametrize("m", [1, 40])
def test_products_are_right(device, dtype, m):
    """Normal operands of unit spread and weights of WEIGHT_SCALE: an output spreads by sqrt(k) times that."""
    from opatlas.ops.gemm.inputs import WEIGHT_SCALE

    _, built, _, call = runner_call(f"gemm/dtype={dtype}/m={m}/n=512/k=1024", device)
    outs = [call.run(i) for i in range(2)]
    for out in outs:
        assert out.shape == (m, 512)
        assert out.float().std().item() == pytest.approx(1024**0.5 * WEIGHT_SCALE, rel=0.25)
    assert len(built.layers) > 1
    pointers = {layer.weight.data_ptr() for layer in built.layers}
    assert len(pointers) == len(built.layers)


class Recorded:
    """The operands that a runner's calls were given, by spying on the layer."""

    def __init__(self, monkeypatch, op):
        module = importlib.import_module(f"opatlas.backends.vllm.{op}")
        attend, self.calls = module.attend, []

        def spy(served, context, operands):
            self.calls.append((served, context, operands))
            return attend(served, context, operands)

        monkeypatch.setattr(module, "attend", spy)


def reference(served, context, operands, query_lens):
    """Attention in float64 over what the cache holds where this step's block table points."""
    from opatlas.backends.vllm.attention import LAYER

    shape, metadata = served.shape, context.attn_metadata[LAYER]
    caches = [cache.double() for cache in served.layer.kv_cache.unbind(1)]
    block = caches[0].shape[1]
    q = operands[0].view(-1, shape.heads, shape.head_dim).double()
    outs, start = [], 0
    for sequence, length in enumerate(metadata.seq_lens.tolist()):
        positions = torch.arange(length, device=q.device)
        blocks = metadata.block_table[sequence].long()[positions // block]
        k, v = (cache[blocks, positions % block] for cache in caches)  # [length, kv_heads, head_dim]
        group = shape.heads // shape.kv_heads
        k, v = (t.repeat_interleave(group, 1) for t in (k, v))
        new = query_lens
        asked = q[start : start + new]
        scores = torch.einsum("qhd,khd->hqk", asked, k) * shape.head_dim**-0.5
        age = (length - new + torch.arange(new, device=q.device))[:, None] - positions
        hidden = (age < 0) | ((age >= shape.window) if shape.window else False)
        scores = scores.masked_fill(hidden, float("-inf"))
        if served.layer.impl.sinks is not None:
            sink = served.layer.impl.sinks.double().view(-1, 1, 1).expand(-1, new, 1)
            weights = torch.cat([scores, sink], -1).softmax(-1)[..., :-1]
        else:
            weights = scores.softmax(-1)
        outs.append(torch.einsum("hqk,khd->qhd", weights, v))
        start += new
    return torch.cat(outs).reshape(start, -1)


@pytest.mark.parametrize(
    ("case_id", "new"),
    [
        (f"attention_context/{SHAPE.format('bfloat16', 0)}/batch=3/isl=100", 100),
        (f"attention_context/{SHAPE.format('bfloat16', 32)}/batch=2/isl=128/variant=sinks", 128),
        (f"attention_generation/{SHAPE.format('bfloat16', 0)}/batch=4/kv_len=300", 1),
        (f"attention_generation/{SHAPE.format('bfloat16', 128)}/batch=4/kv_len=1024/variant=sinks", 1),
        (f"attention_generation/{SHAPE.format('bfloat16', 0)}/batch=1024/kv_len=48", 1),
    ],
)
def test_attention_is_over_each_copys_own_blocks(device, monkeypatch, case_id, new):
    recorded = Recorded(monkeypatch, case_id.partition("/")[0])
    *_, call = runner_call(case_id, device)
    for i in range(3):
        out = call.run(i)
        expected = reference(*recorded.calls[-1], new)
        torch.testing.assert_close(out.double(), expected, rtol=2e-2, atol=2e-2)


def test_new_keys_are_in_the_cache_after_a_step(device, monkeypatch):
    from opatlas.backends.vllm.attention import LAYER

    recorded = Recorded(monkeypatch, "attention_generation")
    *_, call = runner_call(f"attention_generation/{SHAPE.format('bfloat16', 0)}/batch=4/kv_len=300", device)
    call.run(1)
    served, context, (_, key, value) = recorded.calls[-1]
    slots = context.slot_mapping[LAYER]
    for cache, new in zip(served.layer.kv_cache.unbind(1), (key, value), strict=True):
        block = cache.shape[1]
        written = cache[slots // block, slots % block].reshape(len(slots), -1)
        assert torch.equal(written, new)


OFFLINE = """
import os, socket
def refuse(*_):
    raise AssertionError("the network was asked")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from opatlas.backends.vllm.engine import engine_config
config = engine_config(heads=8, kv_heads=2, head_dim=64)
assert config.model_config.get_num_kv_heads(config.parallel_config) == 2
assert not any(files for _, _, files in os.walk(os.environ["HF_HOME"])), "something was fetched"
"""


def test_an_engine_is_configured_without_a_network(tmp_path):
    clean = environment.clean(os.environ, False, tmp_path)
    subprocess.run([sys.executable, "-c", OFFLINE], env=clean, check=True)
