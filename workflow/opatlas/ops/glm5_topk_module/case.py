"""One point of the glm5_topk_module op."""

from opatlas.ops.kernel_case import KernelCase

Case = KernelCase
