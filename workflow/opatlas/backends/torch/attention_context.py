"""attention_context: scaled_dot_product_attention over new tokens, causal, with a mask for a window."""

from __future__ import annotations

from typing import Any

import torch

from opatlas.backends.torch.sdpa import attend, implementation, operand_dtype
from opatlas.measuring.call import Call
from opatlas.measuring.device import Device, require_memory
from opatlas.ops.attention_context.case import Case
from opatlas.ops.attention_context.inputs import windowed

Built = dict[Case, str]


def build(case: Case, device: Device) -> Built:
    """Attention has no weights; what is built up is the implementation that each case got."""
    return {}


def call(built: Built, case: Case, device: Device) -> Call:
    dtype = operand_dtype(case.dtype, case.kv_dtype, case.variant)
    masked = windowed(case)
    tokens = case.batch * case.isl
    query, key = case.heads * case.head_dim, case.kv_heads * case.head_dim
    require_memory(
        device,
        q=tokens * query * dtype.itemsize,
        k_and_v=2 * tokens * key * dtype.itemsize,
        out=2 * tokens * query * dtype.itemsize,
        mask=case.isl * case.isl if masked else 0,
    )

    def heads_first(heads: int) -> Any:
        made = device.normal((case.batch, case.isl, heads, case.head_dim), dtype)
        return made.transpose(1, 2)

    q, k, v = heads_first(case.heads), heads_first(case.kv_heads), heads_first(case.kv_heads)
    mask = None
    if masked:
        mask = torch.ones(case.isl, case.isl, dtype=torch.bool, device=device.torch_device)
        mask = mask.tril_().triu_(1 - case.window)
    built[case] = implementation(q, k, v, not masked, mask)
    run = attend(q, k, v, not masked, mask)
    # Keys and values were made by the layer just before, so nothing here is cold.
    return Call(lambda i: run())


def kernel_source(built: Built, case: Case) -> str:
    return built[case]
