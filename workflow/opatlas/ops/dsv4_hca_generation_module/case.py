"""One point of the dsv4_hca_generation_module op."""

from opatlas.ops.module_case import GenerationCase

Case = GenerationCase
