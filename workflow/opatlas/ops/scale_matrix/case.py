"""One point of the scale_matrix op."""

from opatlas.ops.quantize_case import QuantizeCase

Case = QuantizeCase
