"""One point of the dsa_context_module op."""

from opatlas.ops.module_case import ContextCase

Case = ContextCase
