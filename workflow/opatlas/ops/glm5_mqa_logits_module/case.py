"""One point of the glm5_mqa_logits_module op."""

from opatlas.ops.kernel_case import KernelCase

Case = KernelCase
