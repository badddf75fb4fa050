"""mla_generation for planning and tables."""

from opatlas.ops.latent_attention import expand, generation_columns, generation_work
from opatlas.ops.mla_generation.case import Case
from opatlas.ops.rectangle import read_generation
from opatlas.ops.spec import Op, Table

OP = Op(
    name="mla_generation",
    case=Case,
    build=("dtype", "kv_dtype", "heads"),
    read_grid=read_generation,
    expand=expand,
    work=generation_work,
    table=Table(
        name="generation_mla_perf",
        family="mla",
        op_name="mla_generation",
        columns=generation_columns(),
        key=("kv_cache_dtype", "num_heads", "batch_size", "isl", "step"),
    ),
    precision=("dtype", "kv_dtype"),
)
