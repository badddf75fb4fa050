"""One point of the mla_bmm_gen_pre op."""

from opatlas.ops.bmm_case import BmmCase

Case = BmmCase
