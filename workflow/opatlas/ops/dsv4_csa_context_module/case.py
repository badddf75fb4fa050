"""One point of the dsv4_csa_context_module op."""

from opatlas.ops.module_case import ContextCase

Case = ContextCase
