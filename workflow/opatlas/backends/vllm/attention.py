"""A decoder's attention layer as an engine serves it: the layer, its paged KV cache, a batch's metadata.

A call is what one layer does in one step: it writes the new keys and values into the cache
(vllm/model_executor/layers/attention/attention.py, unified_kv_cache_update), quantises the query where
the cache is in fp8, and attends. The metadata of a batch is made once per step for all layers, so its
making is no part of a call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from vllm.config import set_current_vllm_config
from vllm.config.compilation import CUDAGraphMode
from vllm.forward_context import ForwardContext, create_forward_context, override_forward_context
from vllm.model_executor.layers.attention import Attention, ChunkedLocalAttention
from vllm.model_executor.model_loader.utils import process_weights_after_loading
from vllm.platforms import current_platform
from vllm.v1.attention.backends.registry import AttentionBackendEnum
from vllm.v1.core.single_type_kv_cache_manager import register_all_kvcache_specs
from vllm.v1.kv_cache_interface import KVCacheConfig, KVCacheGroupSpec, KVCacheTensor
from vllm.v1.kv_cache_spec_registry import KVCacheSpecRegistry
from vllm.v1.worker.gpu.attn_utils import (
    _reshape_kv_cache,
    build_attn_metadata,
    get_kv_cache_spec,
    init_attn_backend,
)

from opatlas.backends.vllm.engine import LONGEST, building, engine_config
from opatlas.backends.vllm.paging import Pages
from opatlas.backends.vllm.shapes import CACHE_DTYPES, Shape
from opatlas.measuring.device import Device
from opatlas.measuring.errors import KernelLimit, Unsupported

LAYER = "model.layers.0.self_attn.attn"
SIBLING = "model.layers.1.self_attn.attn"

KERNELS = {2: "flash_fwd", 3: "FlashAttnFwdSm90", 4: "(?i)flash.*(sm90|sm100|fwd)"}
"""What the main kernel of each FlashAttention version is called; where it is missing the case is void."""


@dataclass(frozen=True)
class Served:
    """A layer of an engine for up to so many sequences, with the builder of its metadata."""

    shape: Shape
    config: Any
    layer: Any
    spec: Any
    groups: Any
    block_sizes: list[int]

    @property
    def group(self) -> Any:
        return self.groups[0][0]

    @property
    def graphs(self) -> int:
        """Most tokens of a decode step that this engine replays as one captured graph; 0 for none."""
        compilation = self.config.compilation_config
        full = compilation.cudagraph_mode.decode_mode() == CUDAGraphMode.FULL
        return (compilation.max_cudagraph_capture_size or 0) if full else 0


class Built:
    """The layer of a build, for engines of each capacity that its cases need."""

    def __init__(self, shape: Shape, device: Device) -> None:
        self._shape = shape
        self._device = device
        self._served: dict[tuple[int | None, int], Served] = {}

    def served(self, batch: int = 1, tokens: int = 1) -> Served:
        """The layer in an engine that holds `batch` sequences of `tokens` tokens.

        An engine with default settings, unless its capacity is too small: max_num_seqs sizes the
        buffer of FlashAttention's schedule, and the longest sequence is baked into captured graphs.
        """
        default = self._served.get((None, LONGEST)) or self._make(None, LONGEST)
        seqs = batch if batch > default.config.scheduler_config.max_num_seqs else None
        key = seqs, max(LONGEST, tokens)
        return self._served.get(key) or self._make(*key)

    def _make(self, seqs: int | None, longest: int) -> Served:
        self._served[seqs, longest] = made = serve(self._shape, seqs, longest, self._device)
        return made


def serve(shape: Shape, seqs: int | None, longest: int, device: Device) -> Served:
    """What vllm/v1/worker/gpu/model_runner.py, GPUModelRunner.load_model and initialize_kv_cache, do."""
    if shape.dtype != "bfloat16":
        raise Unsupported(f"vLLM's attention layer takes queries in bfloat16 here, not in {shape.dtype}")
    arguments: dict[str, Any] = {} if seqs is None else {"max_num_seqs": seqs}
    cache_dtype = CACHE_DTYPES[shape.kv_dtype]
    config = engine_config(
        shape.heads, shape.kv_heads, shape.head_dim, longest, kv_cache_dtype=cache_dtype, **arguments
    )
    with building(config, device):
        layer = _layer(shape, config, LAYER, shape.window, device)
        if other := shape.sibling:
            _layer(other, config, SIBLING, other.window, device)
        place = torch.device(device.torch_device)
        process_weights_after_loading(layer, model_config=config.model_config, target_device=place)
        # vllm/v1/executor/uniproc_executor.py, UniProcExecutor._init_executor
        current_platform.update_block_size_for_backend(config)
        register_all_kvcache_specs(config)  # vllm/v1/engine/core.py, EngineCore.__init__
        spec = get_kv_cache_spec(config)[LAYER]
        group = KVCacheGroupSpec(layer_names=[LAYER], kv_cache_spec=spec)
        cache = KVCacheConfig(num_blocks=0, kv_cache_tensors=[], kv_cache_groups=[group])
        groups, support, block_sizes = init_attn_backend(cache, vllm_config=config, device=place)
        config.compilation_config.resolve_cudagraph_mode_and_sizes(
            min_cg_support=support.min_cg_support, min_cg_attn_backend=support.min_cg_attn_backend
        )
    return Served(shape, config, layer, spec, groups, block_sizes)


def _layer(shape: Shape, config: Any, name: str, window: int, device: Device) -> Any:
    """The layer as the models that have such a one build it."""
    common: dict[str, Any] = {
        "num_heads": shape.heads,
        "head_size": shape.head_dim,
        "scale": shape.head_dim**-0.5,
        "num_kv_heads": shape.kv_heads,
        "cache_config": config.cache_config,
        "prefix": name,
    }
    if "chunked" in shape.parts:  # vllm/model_executor/models/llama4.py, Llama4Attention
        return ChunkedLocalAttention(attention_chunk_size=window, **common)
    if "sinks" in shape.parts:  # vllm/model_executor/models/gpt_oss.py, OAIAttention
        common["sinks"] = torch.nn.Parameter(device.normal((shape.heads,), torch.bfloat16).clone(), False)
    if "v128" in shape.parts:  # vllm/model_executor/models/mimo_v2.py, MiMoV2Attention
        backend = AttentionBackendEnum.FLASH_ATTN_DIFFKV.get_class()
        sizes = {"head_size": shape.head_dim, "head_size_v": shape.value_dim}
        if not backend.is_supported_on_current_device(**sizes, has_sinks="sinks" in shape.parts):
            backend = AttentionBackendEnum.TRITON_ATTN_DIFFKV.get_class()
        backend.set_head_size_v(shape.value_dim)
        common |= {"attn_backend": backend, "head_size_v": shape.value_dim}
    return Attention(per_layer_sliding_window=window or None, **common)


def kernel_source(served: Served) -> str:
    version = getattr(served.layer.impl, "vllm_flash_attn_version", None)
    name = served.layer.attn_backend.get_name().lower()
    return f"vllm_{name}" if version is None else f"vllm_{name}_fa{version}"


def kernel(served: Served) -> str:
    """The pattern of the kernel's name; "" for backends other than FlashAttention."""
    return KERNELS.get(getattr(served.layer.impl, "vllm_flash_attn_version", None) or 0, "")


class Batch:
    """`copies` batches of sequences that have `length` tokens, `new` of them new."""

    def __init__(self, served: Served, batch: int, length: int, new: int, copies: int) -> None:
        self.served = served
        # The manager of this kind of cache frees blocks that no later token sees.
        manager = KVCacheSpecRegistry.get_manager_class(served.spec)
        skipped = manager.get_num_skipped_tokens(served.spec, num_computed_tokens=length - new)
        longest = served.config.model_config.max_model_len
        self.pages = Pages(copies, batch, length, new, served.block_sizes[0], skipped, longest)

    @property
    def cache_bytes(self) -> int:
        return int(self.pages.blocks * self.served.spec.page_size_bytes)

    def contexts(self, device: Device) -> list[ForwardContext]:
        """Fills and binds the cache; the forward context of each copy's step."""
        self._bind_cache(device)
        copies = self.pages.copies
        tables, slots = self.pages.tables(device.torch_device)
        metadata = self._metadata(tables[0], slots[0], device)
        builder = self.served.group.get_metadata_builder(0)
        if copies > 1 and not builder.supports_update_block_table:
            name = self.served.layer.attn_backend.get_name()
            raise KernelLimit(
                f"this runner rotates {copies} copies of a KV cache by update_block_table, "
                f"which {name} has not ({type(builder).__module__}.{type(builder).__name__})"
            )
        return [
            create_forward_context(
                attn_metadata={
                    LAYER: metadata
                    if i == 0
                    else builder.update_block_table(metadata, blk_table=tables[i], slot_mapping=slots[i])
                },
                vllm_config=self.served.config,
                slot_mapping={LAYER: slots[i]},
            )
            for i in range(copies)
        ]

    def _bind_cache(self, device: Device) -> None:
        """A cache of random values. Calls write to it, values of the same distribution.

        Attention.kv_cache is what vllm/v1/worker/utils.py, bind_kv_cache, sets.
        """
        spec = self.served.spec
        dtype = torch.float8_e4m3fn if self.served.shape.kv_dtype == "fp8" else torch.bfloat16
        raw = device.normal((self.cache_bytes // dtype.itemsize,), dtype).view(torch.int8)
        cache = KVCacheConfig(
            num_blocks=self.pages.blocks,
            kv_cache_tensors=[KVCacheTensor(size=raw.numel(), shared_by=[LAYER])],
            kv_cache_groups=[KVCacheGroupSpec(layer_names=[LAYER], kv_cache_spec=spec)],
        )
        config = self.served.config
        with set_current_vllm_config(config):
            self.served.layer.kv_cache = _reshape_kv_cache(
                attn_groups=self.served.groups[0],
                kv_cache_raw_tensors={LAYER: raw},
                cache_dtype=config.cache_config.cache_dtype,
                kernel_block_sizes=self.served.block_sizes,
                shared_kv_cache_layers={},
                kv_cache_config=cache,
            )[LAYER]

    def _metadata(self, table: Any, slots: Any, device: Device) -> Any:
        """What the layer gets in such a step.

        A decode step of an engine replays a graph. What its capture said stays, what it read from
        buffers is that of the step: vllm/v1/worker/gpu/model_states/default.py,
        DefaultModelState.prepare_attn, with for_capture and without. All batches that are asked for
        are sizes that an engine captures, so none is padded.
        """
        served, (_, batch, length, new, *_) = self.served, self.pages
        starts = torch.arange(batch + 1, dtype=torch.int32) * new
        lengths = torch.full((batch,), length, dtype=torch.int32)
        group = KVCacheGroupSpec(layer_names=[LAYER], kv_cache_spec=served.spec)
        common: dict[str, Any] = {
            "attn_groups": served.groups,
            "num_reqs": batch,
            "num_tokens": batch * new,
            "query_start_loc_gpu": starts.to(device.torch_device),
            "query_start_loc_cpu": starts,
            "max_query_len": new,
            "seq_lens": lengths.to(device.torch_device),
            "seq_lens_cpu_upper_bound": lengths,
            "block_tables": [table],
            "slot_mappings": [slots],
            "kv_cache_config": KVCacheConfig(
                num_blocks=self.pages.blocks, kv_cache_tensors=[], kv_cache_groups=[group]
            ),
        }
        with set_current_vllm_config(served.config):
            captured = None
            if new == 1 and batch <= served.graphs:
                longest = served.config.model_config.max_model_len
                captured = build_attn_metadata(max_seq_len=longest, for_cudagraph_capture=True, **common)
            metadata = build_attn_metadata(max_seq_len=length, **common)
        return (captured or metadata)[LAYER]


def projected(served: Served, tokens: int, sets: int, device: Device) -> list[tuple[Any, Any, Any]]:
    """Queries, keys and values of each set, as the joined projection leaves them: side by side."""
    widths = served.shape.widths
    joined = device.normal((sets, tokens, sum(widths)), torch.bfloat16)
    return [one.split(widths, dim=-1) for one in joined.unbind(0)]


def attend(served: Served, context: ForwardContext, operands: tuple[Any, Any, Any]) -> Any:
    with override_forward_context(context):
        return served.layer(*operands)
