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
    q_bytes, k_bytes = (
        tokens * heads * case.head_dim * dtype.itemsize for heads in (case.heads, case.kv_heads)
    )
    sets = device.sets(2 * q_bytes + 2 * k_bytes)
    require_memory(
        device,
        q=sets * q_bytes,
        k_and_v=2 * sets * k_bytes,
        out=(sets + 1) * q_bytes,
        mask=case.isl * case.isl if masked else 0,
    )

    def heads_first(heads: int) -> Any:
        made = device.normal((sets, case.batch, case.isl, heads, case.head_dim), dtype)
        return made.transpose(2, 3).unbind(0)

    q, k, v = heads_first(case.heads), heads_first(case.kv_heads), heads_first(case.kv_heads)
    mask = None
    if masked:
        mask = torch.ones(case.isl, case.isl, dtype=torch.bool, device=device.torch_device)
        mask = mask.tril_().triu_(1 - case.window)
    built[case] = implementation(q[0], k[0], v[0], not masked, mask)

    # Keys and values were made by the layer just before, so nothing here is cold.
    def run(i: int) -> Any:
        chosen = i % sets
        return attend(q[chosen], k[chosen], v[chosen], not masked, mask)

    return Call(run, sets=sets)


def kernel_source(built: Built, case: Case) -> str:
    return built[case]
