"""encoder_attention: vLLM's attention of vision encoders over the patches of a batch of images."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from vllm.model_executor.layers.attention.mm_encoder_attention import MMEncoderAttention
from vllm.model_executor.model_loader.utils import process_weights_after_loading

from opatlas.backends.vllm.engine import any_engine, building
from opatlas.measuring.call import Call
from opatlas.measuring.device import Device, require_memory
from opatlas.measuring.errors import Unsupported
from opatlas.ops.encoder_attention.case import Case

NAME = "visual.blocks.0.attn.attn"

KERNELS = {2: "flash_fwd", 3: "FlashAttnFwdSm90", 4: "(?i)flash.*(sm90|sm100|fwd)"}
"""What the kernel of each FlashAttention version is called; where it is missing the case is void."""


def build(case: Case, device: Device) -> Any:
    if case.dtype != "bfloat16":
        raise Unsupported(f"vLLM's encoder attention is planned in bfloat16, not in {case.dtype}")
    config = any_engine()
    with building(config, device):
        layer = MMEncoderAttention(
            num_heads=case.heads, head_size=case.head_dim, scale=case.head_dim**-0.5, prefix=NAME
        )
        place = torch.device(device.torch_device)
        process_weights_after_loading(layer, model_config=config.model_config, target_device=place)
    return layer


def call(built: Any, case: Case, device: Device) -> Call:
    """The images' patches follow each other in one sequence, cut by `cu_seqlens`.

    vllm/model_executor/models/qwen3_vl.py, Qwen3_VisionTransformer.prepare_encoder_metadata, makes
    cu_seqlens, max_seqlen and sequence_lengths; queries and keys come from the rotary embedding, each
    contiguous, values from the joined projection (qwen2_5_vl.py, Qwen2_5_VisionAttention.forward).
    """
    tokens = case.batch * case.isl
    heads_bytes = 2 * tokens * case.heads * case.head_dim
    sets = device.sets(4 * heads_bytes)
    require_memory(
        device, q_and_k=2 * sets * heads_bytes, qkv=3 * sets * heads_bytes, out=(sets + 1) * heads_bytes
    )
    shape = (sets, 1, tokens, case.heads, case.head_dim)
    q, k = device.normal(shape, torch.bfloat16).unbind(0), device.normal(shape, torch.bfloat16).unbind(0)
    joined = device.normal((sets, 1, tokens, 3, case.heads, case.head_dim), torch.bfloat16)
    v = [one[:, :, 2] for one in joined.unbind(0)]
    backend, place = built.attn_backend, torch.device(device.torch_device)
    starts = np.arange(case.batch + 1, dtype=np.int32) * case.isl
    width = case.heads * case.head_dim
    metadata = {
        "cu_seqlens": MMEncoderAttention.maybe_recompute_cu_seqlens(
            backend, cu_seqlens=starts, hidden_size=width, tp_size=1, device=place
        ),
        "max_seqlen": torch.tensor(
            MMEncoderAttention.compute_max_seqlen(backend, cu_seqlens=starts), dtype=torch.int32
        ),
        "sequence_lengths": MMEncoderAttention.maybe_compute_seq_lens(
            backend, cu_seqlens=starts, device=place
        ),
    }

    def run(i: int) -> Any:
        chosen = i % sets
        return built(query=q[chosen], key=k[chosen], value=v[chosen], **metadata)

    return Call(run, sets=sets, kernel=KERNELS.get(built._fa_version or 0, ""))


def kernel_source(built: Any, case: Case) -> str:
    name = built.attn_backend.name.lower()
    return f"vllm_vit_{name}_fa{built._fa_version}" if built._fa_version else f"vllm_vit_{name}"
