"""kda for planning and tables."""

from opatlas.ops.delta_rule import delta_rule_op

OP = delta_rule_op("kda", family="kda")
