"""One point of the dsv4_paged_mqa_logits_module op."""

from opatlas.ops.kernel_case import KernelCase

Case = KernelCase
