"""compute_scale for planning and tables.

Where a framework finds the scale by a kernel of its own, a row is that kernel's time. Where one kernel finds
it and quantises too, a row is that kernel's, and what the scale adds is that less the row of scale_matrix;
public tables hold that difference, cut at zero, so zero is a legal value of what is imported from them.
"""

from opatlas.ops.quantize import quantize_op

OP = quantize_op("compute_scale", "computescale_perf", zero=True)
