"""One point of the mla_bmm_gen_post op."""

from opatlas.ops.bmm_case import BmmCase

Case = BmmCase
