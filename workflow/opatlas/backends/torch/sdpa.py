"""scaled_dot_product_attention, and which of its implementations PyTorch picks for some operands."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.attention import SDPBackend
from torch.nn.functional import scaled_dot_product_attention

from opatlas.backends.torch.dtypes import torch_dtype
from opatlas.measuring.errors import Unsupported


def operand_dtype(dtype: str, kv_dtype: str, variant: str) -> Any:
    """The one precision of q, k and v; Unsupported where SDPA cannot do what the layer needs."""
    if variant:
        raise Unsupported(f"scaled_dot_product_attention has no {variant}")
    if dtype != kv_dtype or dtype == "fp8":
        raise Unsupported(
            "scaled_dot_product_attention takes q, k and v of one precision of 16 or 32 bits, "
            f"not {dtype} with a KV cache in {kv_dtype}"
        )
    return torch_dtype(dtype)


def attend(q: Any, k: Any, v: Any, causal: bool = False, mask: Any = None) -> Any:
    """The output for operands [batch, heads, tokens, head_dim]."""
    grouped = q.shape[1] != k.shape[1]
    return scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, enable_gqa=grouped)


def implementation(q: Any, k: Any, v: Any, causal: bool = False, mask: Any = None) -> str:
    """`torch.sdpa.` and the implementation in lower case, as PyTorch's own dispatch answers."""
    grouped = q.shape[1] != k.shape[1]
    chosen = torch._fused_sdp_choice(q, k, v, mask, 0.0, causal, enable_gqa=grouped)
    return f"torch.sdpa.{SDPBackend(chosen).name.lower()}"
