"""dsv4_csa_generation_module for planning and tables."""

from opatlas.ops.attention_module import CSA, generation_op
from opatlas.ops.long_context import read_grid
from opatlas.ops.spec import constant_column

OP = generation_op(
    "dsv4_csa_generation_module",
    CSA,
    read_grid,
    lambda grid, max_context: grid.ladder.points(max_context),
    key=("mla_dtype", "kv_cache_dtype", "gemm_type", "num_heads", "tp_size", "step", "isl", "batch_size"),
    sweep="long_context",
    extra=(constant_column("compress_ratio", "int64", 4),),
)
