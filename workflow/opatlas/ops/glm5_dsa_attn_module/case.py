"""One point of the glm5_dsa_attn_module op."""

from opatlas.ops.kernel_case import KernelCase

Case = KernelCase
