"""What the runners use of objects that vLLM hands out, which their sources do not show.

Each entry: module:symbol, and where it is called, the number of positional arguments and the keywords.
"""

PACKAGE = "vllm"

FLASH = "vllm.v1.attention.backends.flash_attn"
SPEC = "vllm.v1.kv_cache_interface"

USES = (
    # engine.py, attention.py: the configuration
    ("vllm.config.vllm:VllmConfig.model_config",),
    ("vllm.config.vllm:VllmConfig.cache_config",),
    ("vllm.config.vllm:VllmConfig.compilation_config",),
    ("vllm.config.vllm:VllmConfig.scheduler_config",),
    ("vllm.config.model:ModelConfig.dtype",),
    ("vllm.config.model:ModelConfig.max_model_len",),
    ("vllm.config.scheduler:SchedulerConfig.max_num_seqs",),
    ("vllm.config.cache:CacheConfig.cache_dtype",),
    ("vllm.config.compilation:CompilationConfig.cudagraph_mode",),
    ("vllm.config.compilation:CompilationConfig.max_cudagraph_capture_size",),
    (
        "vllm.config.compilation:CompilationConfig.resolve_cudagraph_mode_and_sizes",
        0,
        "min_cg_support",
        "min_cg_attn_backend",
    ),
    ("vllm.config.compilation:CUDAGraphMode.decode_mode", 0),
    ("vllm.engine.arg_utils:EngineArgs.create_engine_config", 1),
    ("vllm.engine.arg_utils:EngineArgs.kv_cache_dtype",),
    ("vllm.engine.arg_utils:EngineArgs.max_num_seqs",),
    ("vllm.platforms.interface:Platform.update_block_size_for_backend", 1),
    # attention.py: layers, caches and metadata
    ("vllm.model_executor.layers.attention.attention:Attention.forward", 3),
    ("vllm.model_executor.layers.attention.attention:Attention.impl",),
    ("vllm.model_executor.layers.attention.attention:Attention.attn_backend",),
    ("vllm.model_executor.layers.attention.attention:Attention.kv_cache",),
    (f"{FLASH}:FlashAttentionBackend.get_name", 0),
    (f"{FLASH}:FlashAttentionImpl.vllm_flash_attn_version",),
    (f"{FLASH}:FlashAttentionMetadataBuilder.supports_update_block_table",),
    (f"{FLASH}:FlashAttentionMetadataBuilder.update_block_table", 1, "blk_table", "slot_mapping"),
    (f"{FLASH}_diffkv:FlashAttentionDiffKVBackend.set_head_size_v", 1),
    (
        f"{FLASH}_diffkv:FlashAttentionDiffKVBackend.is_supported_on_current_device",
        0,
        "head_size",
        "head_size_v",
        "has_sinks",
    ),
    ("vllm.v1.attention.backends.triton_attn_diffkv:TritonAttentionDiffKVBackend.set_head_size_v", 1),
    ("vllm.v1.attention.backends.registry:AttentionBackendEnum.get_class", 0),
    ("vllm.v1.core.single_type_kv_cache_manager:SlidingWindowManager.sliding_window",),
    (f"{SPEC}:SlidingWindowSpec.sliding_window",),
    ("vllm.v1.core.single_type_kv_cache_manager:ChunkedLocalAttentionManager.attention_chunk_size",),
    (f"{SPEC}:ChunkedLocalAttentionSpec.attention_chunk_size",),
    (f"{SPEC}:AttentionSpec.page_size_bytes",),
    ("vllm.v1.worker.utils:AttentionGroup.get_metadata_builder", 1),
    ("vllm.v1.worker.gpu.attn_utils:AttentionCGSupportInfo.min_cg_support",),
    ("vllm.v1.worker.gpu.attn_utils:AttentionCGSupportInfo.min_cg_attn_backend",),
    # encoder_attention.py
    (
        "vllm.model_executor.layers.attention.mm_encoder_attention:MMEncoderAttention.forward_cuda",
        0,
        "query",
        "key",
        "value",
        "cu_seqlens",
        "max_seqlen",
        "sequence_lengths",
    ),
    ("vllm.model_executor.layers.attention.mm_encoder_attention:MMEncoderAttention.attn_backend",),
    ("vllm.model_executor.layers.attention.mm_encoder_attention:MMEncoderAttention._fa_version",),
    # linear.py, gemm.py, quantize.py
    ("vllm.model_executor.layers.linear:ReplicatedLinear.forward", 1),
    ("vllm.model_executor.layers.linear:LinearBase.quant_method",),
    ("vllm.model_executor.layers.quantization.fp8:Fp8LinearMethod.fp8_linear",),
    ("vllm.model_executor.layers.quantization.modelopt:ModelOptNvFp4LinearMethod.kernel",),
    ("vllm.model_executor.kernels.linear.scaled_mm.ScaledMMLinearKernel:FP8ScaledMMLinearKernel.quant_fp8",),
    (
        "vllm.model_executor.kernels.linear.scaled_mm.BlockScaledMMLinearKernel:"
        "Fp8BlockScaledDynamicMMLinearKernel.base",
    ),
    (
        "vllm.model_executor.kernels.linear.scaled_mm.BlockScaledMMLinearKernel:"
        "Fp8BlockScaledDynamicMMLinearKernel.fallback",
    ),
    ("vllm.model_executor.layers.quantization.input_quant_fp8:QuantFP8.forward_cuda", 3),
)
