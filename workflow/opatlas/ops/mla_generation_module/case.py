"""One point of the mla_generation_module op."""

from opatlas.ops.module_case import GenerationCase

Case = GenerationCase
