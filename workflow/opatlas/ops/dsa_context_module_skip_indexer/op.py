"""dsa_context_module_skip_indexer for planning and tables."""

from dataclasses import replace

from opatlas.ops.attention_module import DSA, context_op
from opatlas.ops.long_context import read_grid

OP = context_op(
    "dsa_context_module_skip_indexer",
    replace(DSA, index=0),
    read_grid,
    lambda grid, max_context: grid.context.points(max_context),
    key=(
        *("architecture", "mla_dtype", "kv_cache_dtype", "gemm_type"),
        *("num_heads", "step", "isl", "batch_size"),
    ),
    sweep="long_context",
    table="dsa_context_module",
    wants=lambda module: module.skip_indexer,
)
