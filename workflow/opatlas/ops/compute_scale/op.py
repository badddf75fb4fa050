"""compute_scale for planning and tables.

Where a framework finds the scale by a kernel of its own, a row is that kernel's time. Where one kernel finds
it and quantises too, a row is that kernel's, and what the scale adds is that less the row of scale_matrix;
public tables hold that difference, cut at zero. A row that is such a difference brings both of its timings
with it: a zero alone would hide what is below their error.
"""

from opatlas.ops.quantize import quantize_op

OP = quantize_op(
    "compute_scale",
    "computescale_perf",
    zero=True,
    difference=("latency_dynamic", "latency_static"),
)
