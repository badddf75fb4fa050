"""mla_context_module for planning and tables."""

from opatlas.ops.attention_module import MLA, context_op
from opatlas.ops.rectangle import read_context

OP = context_op(
    "mla_context_module",
    MLA,
    read_context,
    lambda grid, max_context: [(*point, 0) for point in grid.points(max_context)],
    key=("mla_dtype", "kv_cache_dtype", "gemm_type", "model", "num_heads", "isl", "batch_size"),
)
