"""One point of the msa_generation_module op."""

from opatlas.ops.module_case import GenerationCase

Case = GenerationCase
