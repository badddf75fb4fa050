"""compute_scale for planning and tables.

A row is the difference of two timings, so zero is a legal value.
"""

from opatlas.ops.quantize import quantize_op

OP = quantize_op("compute_scale", "computescale_perf", zero=True)
