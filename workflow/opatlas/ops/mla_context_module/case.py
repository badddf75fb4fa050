"""One point of the mla_context_module op."""

from opatlas.ops.module_case import ContextCase

Case = ContextCase
