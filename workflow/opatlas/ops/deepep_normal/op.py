"""deepep_normal for planning and tables."""

from opatlas.ops.deepep import deepep_op
from opatlas.ops.spec import Table, field_column

OP = deepep_op(
    "deepep_normal",
    Table(
        name="wideep_deepep_normal_perf",
        family="comm",
        op_name="deepep_normal",
        columns=(
            field_column("node_num", "int64", "nodes"),
            field_column("hidden_size", "int64", "hidden"),
            field_column("num_token", "int64", "tokens"),
            field_column("num_topk", "int64", "topk"),
            field_column("num_experts", "int64", "experts"),
            field_column("dispatch_sms", "int64", "sms"),
            field_column("combine_sms", "int64", "sms"),
        ),
        key=("node_num", "hidden_size", "num_topk", "num_experts", "dispatch_sms", "num_token"),
        measured=(
            ("dispatch_transmit_us", "us"),
            ("dispatch_notify_us", "us"),
            ("combine_transmit_us", "us"),
            ("combine_notify_us", "us"),
        ),
    ),
)
