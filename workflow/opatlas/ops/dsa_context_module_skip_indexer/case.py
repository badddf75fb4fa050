"""One point of the dsa_context_module_skip_indexer op."""

from opatlas.ops.module_case import ContextCase

Case = ContextCase
