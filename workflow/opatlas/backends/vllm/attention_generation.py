"""attention_generation: vLLM's attention layer in a decode step over a paged KV cache."""

from __future__ import annotations

from typing import Any

from opatlas.backends.vllm.attention import Batch, Built, attend, kernel, projected
from opatlas.backends.vllm.attention import kernel_source as source
from opatlas.backends.vllm.shapes import Shape
from opatlas.measuring.call import Call
from opatlas.measuring.device import Device, require_memory
from opatlas.ops.attention_generation.case import Case
from opatlas.ops.attention_generation.inputs import keys_read


def build(case: Case, device: Device) -> Built:
    built = Built(Shape.of(case), device)
    built.served()
    return built


def call(built: Built, case: Case, device: Device) -> Call:
    served = built.served(case.batch, case.kv_len)
    shape = served.shape
    qkv_bytes = 2 * case.batch * sum(shape.widths)
    out_bytes = 2 * case.batch * shape.heads * shape.value_dim
    one = Batch(served, case.batch, case.kv_len, 1, 1)
    read = kv_bytes(case)
    copies = device.copies(read, one.cache_bytes)
    sets = device.sets(qkv_bytes + out_bytes + read)
    steps = Batch(served, case.batch, case.kv_len, 1, copies)
    require_memory(
        device,
        kv_caches=steps.cache_bytes,
        tables=steps.pages.table_bytes,
        qkv=sets * qkv_bytes,
        out=(sets + 1) * out_bytes,
    )
    contexts = steps.contexts(device)
    operands = projected(served, case.batch, sets, device)

    def run(i: int) -> Any:
        return attend(served, contexts[i % copies], operands[i % sets])

    return Call(run, copies, read, sets, kernel=kernel(served))


def kernel_source(built: Built, case: Case) -> str:
    return source(built.served(case.batch, case.kv_len))


def kv_bytes(case: Case) -> int:
    """Bytes of keys and values that one call reads of a cache."""
    return case.batch * keys_read(case) * Shape.of(case).token_bytes
