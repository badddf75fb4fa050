"""dsa_generation_module for planning and tables."""

from opatlas.ops.attention_module import DSA, generation_op
from opatlas.ops.long_context import read_grid

OP = generation_op(
    "dsa_generation_module",
    DSA,
    read_grid,
    lambda grid, max_context: grid.decode.points(max_context),
    key=("architecture", "mla_dtype", "kv_cache_dtype", "gemm_type", "num_heads", "step", "batch_size"),
    sweep="long_context",
)
