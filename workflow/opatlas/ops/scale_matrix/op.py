"""scale_matrix for planning and tables."""

from opatlas.ops.quantize import quantize_op

OP = quantize_op("scale_matrix", "scale_matrix_perf")
