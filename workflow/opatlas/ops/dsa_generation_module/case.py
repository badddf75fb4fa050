"""One point of the dsa_generation_module op."""

from opatlas.ops.module_case import GenerationCase

Case = GenerationCase
