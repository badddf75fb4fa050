"""One point of the dsv4_hca_context_module op."""

from opatlas.ops.module_case import ContextCase

Case = ContextCase
