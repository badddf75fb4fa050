"""mla_generation_module for planning and tables."""

from opatlas.ops.attention_module import MLA, generation_op
from opatlas.ops.rectangle import read_generation

OP = generation_op(
    "mla_generation_module",
    MLA,
    read_generation,
    lambda grid, max_context: grid.points(max_context),
    key=("kv_cache_dtype", "gemm_type", "model", "num_heads", "batch_size", "step"),
)
