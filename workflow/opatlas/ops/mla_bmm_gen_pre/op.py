"""mla_bmm_gen_pre for planning and tables."""

from opatlas.ops.mla_bmm import bmm_op

OP = bmm_op("mla_bmm_gen_pre", "mla_gen_pre", read=128, written=512)
