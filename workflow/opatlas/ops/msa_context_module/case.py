"""One point of the msa_context_module op."""

from opatlas.ops.module_case import ContextCase

Case = ContextCase
