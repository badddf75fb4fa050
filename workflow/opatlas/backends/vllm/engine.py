"""The configuration of an engine that serves a layer, and the place in which its layers are built."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import torch
from vllm.config import VllmConfig, set_current_vllm_config
from vllm.distributed.parallel_state import (
    ensure_model_parallel_initialized,
    init_distributed_environment,
    model_parallel_is_initialized,
)
from vllm.engine.arg_utils import EngineArgs
from vllm.model_executor.models import ModelRegistry
from vllm.model_executor.models.llama import LlamaForCausalLM
from vllm.usage.usage_lib import UsageContext
from vllm.utils.torch_utils import set_default_torch_dtype

from opatlas.measuring.device import Device

LONGEST = 131072
"""Tokens of a sequence that an engine is built for: what most models served today say themselves.
It is baked into captured decode graphs as `max_seq_len`."""

# Named as a class, or else a process of its own imports vLLM again to look at it, for ten seconds.
ModelRegistry.register_model(LlamaForCausalLM.__name__, LlamaForCausalLM)

MODEL: dict[str, Any] = {
    "architectures": [LlamaForCausalLM.__name__],
    "model_type": "llama",
    "num_hidden_layers": 1,
    "intermediate_size": 128,
    "vocab_size": 128,
    "torch_dtype": "bfloat16",
}
"""A model's config.json, less the geometry that the case names. What is not named enters no layer."""


def engine_config(
    heads: int = 1,
    kv_heads: int = 1,
    head_dim: int = 128,
    longest: int = LONGEST,
    **arguments: Any,
) -> VllmConfig:
    """What `vllm serve` makes of a model with this attention geometry on one rank, and of `arguments`.

    The model is a config.json written here, so no hub is asked and nothing is downloaded.
    """
    model = {
        **MODEL,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
        "hidden_size": heads * head_dim,
        "max_position_embeddings": longest,
    }
    with tempfile.TemporaryDirectory(prefix="opatlas-model-") as folder:
        (Path(folder) / "config.json").write_text(json.dumps(model))
        return EngineArgs(
            model=folder,
            skip_tokenizer_init=True,
            load_format="dummy",
            # DIFFERS: under torch.compile, vLLM's default, quantisation of activations without block
            # scales is left to Inductor, which mostly fuses it into the kernel before it. Here it is
            # vLLM's own kernel, a launch of its own, which is what eager serving and block scales get.
            # Direction: too slow, by that launch at most (about 2 us). Retire: time a compiled
            # graph of norm and layer against one of the norm alone.
            compilation_config={"custom_ops": ["all"]},
            **arguments,
        ).create_engine_config(UsageContext.OPENAI_API_SERVER)


@cache
def any_engine() -> VllmConfig:
    """An engine for layers in whose making a model's geometry has no part."""
    return engine_config()


@contextmanager
def building(config: VllmConfig, device: Device) -> Iterator[None]:
    """Layers made inside belong to this engine: vllm/model_executor/model_loader/base_loader.py,
    BaseModelLoader.load_model, sets the same three."""
    with (
        set_current_vllm_config(config),
        set_default_torch_dtype(config.model_config.dtype),
        torch.device(device.torch_device),
    ):
        _join_groups()
        yield


def _join_groups() -> None:
    """The groups of one rank, which layers ask for their size; as vllm/v1/worker/gpu_worker.py,
    init_worker_distributed_environment, makes them. They stay for as long as the process lives.

    Nothing is ever sent, so the groups need no NCCL, whose watching threads keep a process from ending. The
    meeting file stays too: who asks the store after it is gone waits for it, for minutes.
    """
    if model_parallel_is_initialized():
        return
    folder = tempfile.mkdtemp(prefix="opatlas-group-")
    init_distributed_environment(
        world_size=1,
        rank=0,
        distributed_init_method=f"file://{folder}/meeting",
        local_rank=0,
        backend="gloo",
    )
    ensure_model_parallel_initialized(tensor_model_parallel_size=1, pipeline_model_parallel_size=1)
