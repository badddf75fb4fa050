"""attention_context: vLLM's attention layer in a prefill step of whole prompts.

DIFFERS: all prompts are one step, however many tokens they have; an engine with default settings cuts
steps at max_num_batched_tokens (8192). Direction: none for the work; a step that is cut reads its
earlier keys again. Retire: when cases of chunked prefill are planned.
"""

from __future__ import annotations

from typing import Any

from opatlas.backends.vllm.attention import Batch, Built, attend, kernel, projected
from opatlas.backends.vllm.attention import kernel_source as source
from opatlas.backends.vllm.shapes import Shape
from opatlas.measuring.call import Call
from opatlas.measuring.device import Device, require_memory
from opatlas.ops.attention_context.case import Case


def build(case: Case, device: Device) -> Built:
    built = Built(Shape.of(case), device)
    built.served()
    return built


def call(built: Built, case: Case, device: Device) -> Call:
    served = built.served(case.batch, case.isl)
    tokens = case.batch * case.isl
    shape = served.shape
    qkv_bytes = 2 * tokens * sum(shape.widths)
    out_bytes = 2 * tokens * shape.heads * shape.value_dim
    cached = Batch(served, case.batch, case.isl, case.isl, 1)
    sets = device.sets(qkv_bytes + out_bytes + cached.cache_bytes)
    steps = Batch(served, case.batch, case.isl, case.isl, sets)
    require_memory(
        device,
        kv_cache=steps.cache_bytes,
        tables=steps.pages.table_bytes,
        qkv=sets * qkv_bytes,
        fp8_query=out_bytes if shape.kv_dtype == "fp8" else 0,
        out=(sets + 1) * out_bytes,
    )
    contexts = steps.contexts(device)
    operands = projected(served, tokens, sets, device)

    # Keys and values were made by the layer just before, so nothing here is cold.
    def run(i: int) -> Any:
        return attend(served, contexts[i % sets], operands[i % sets])

    return Call(run, sets=sets, kernel=kernel(served))


def kernel_source(built: Built, case: Case) -> str:
    return source(built.served(case.batch, case.isl))
