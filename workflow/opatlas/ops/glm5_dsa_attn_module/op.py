"""glm5_dsa_attn_module for planning and tables."""

from opatlas.ops.kernel_case import KernelCase
from opatlas.ops.long_context import read_grid
from opatlas.ops.sparse_kernel import BUILD, PRECISION, attention_work, columns, expansion, glm5_points
from opatlas.ops.spec import Op, Table

OP = Op(
    name="glm5_dsa_attn_module",
    case=KernelCase,
    build=BUILD,
    read_grid=read_grid,
    expand=expansion("glm5", glm5_points),
    work=lambda columns: attention_work(columns, topk=2048),
    table=Table(
        name="glm5_dsa_attn_module_perf",
        family="sparse_attention",
        op_name="glm5_dsa_attn_module",
        columns=columns(1),
        key=("num_heads", "step", "isl", "batch_size"),
    ),
    precision=PRECISION,
    sweep="long_context",
)
