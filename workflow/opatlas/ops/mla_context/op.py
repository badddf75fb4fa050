"""mla_context for planning and tables."""

from opatlas.ops.latent_attention import context_columns, context_work, expand
from opatlas.ops.mla_context.case import Case
from opatlas.ops.rectangle import read_context
from opatlas.ops.spec import Op, Table

OP = Op(
    name="mla_context",
    case=Case,
    build=("dtype", "kv_dtype", "heads"),
    read_grid=read_context,
    expand=expand,
    work=context_work,
    table=Table(
        name="context_mla_perf",
        family="mla",
        op_name="mla_context",
        columns=context_columns(),
        key=("mla_dtype", "kv_cache_dtype", "num_heads", "isl", "batch_size"),
    ),
    precision=("dtype", "kv_dtype"),
)
