"""One point of the dsa_generation_module_skip_indexer op."""

from opatlas.ops.module_case import GenerationCase

Case = GenerationCase
