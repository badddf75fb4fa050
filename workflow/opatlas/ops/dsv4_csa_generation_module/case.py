"""One point of the dsv4_csa_generation_module op."""

from opatlas.ops.module_case import GenerationCase

Case = GenerationCase
