"""deepep_ll for planning and tables."""

from opatlas.ops.deepep import deepep_op
from opatlas.ops.spec import Table, field_column

OP = deepep_op(
    "deepep_ll",
    Table(
        name="wideep_deepep_ll_perf",
        family="comm",
        op_name="deepep_ll",
        columns=(
            field_column("node_num", "int64", "nodes"),
            field_column("hidden_size", "int64", "hidden"),
            field_column("num_token", "int64", "tokens"),
            field_column("num_topk", "int64", "topk"),
            field_column("num_experts", "int64", "experts"),
        ),
        key=("node_num", "hidden_size", "num_topk", "num_experts", "num_token"),
        measured=(
            ("combine_avg_t_us", "us"),
            ("combine_bandwidth_gbps", "GB/s"),
            ("dispatch_avg_t_us", "us"),
            ("dispatch_bandwidth_gbps", "GB/s"),
        ),
    ),
)
