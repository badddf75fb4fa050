"""glm5_mqa_logits_module for planning and tables."""

from opatlas.ops.kernel_case import KernelCase
from opatlas.ops.long_context import read_grid
from opatlas.ops.sparse_kernel import BUILD, PRECISION, columns, expansion, glm5_points, logits_work
from opatlas.ops.spec import Op, Table

OP = Op(
    name="glm5_mqa_logits_module",
    case=KernelCase,
    build=BUILD,
    read_grid=read_grid,
    expand=expansion("glm5", glm5_points),
    work=logits_work,
    table=Table(
        name="glm5_mqa_logits_module_perf",
        family="sparse_attention",
        op_name="glm5_mqa_logits_module",
        columns=columns(1),
        key=("num_heads", "step", "isl", "batch_size"),
    ),
    precision=PRECISION,
    sweep="long_context",
)
