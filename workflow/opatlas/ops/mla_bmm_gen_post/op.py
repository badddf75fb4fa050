"""mla_bmm_gen_post for planning and tables."""

from opatlas.ops.mla_bmm import bmm_op

OP = bmm_op("mla_bmm_gen_post", "mla_gen_post", read=512, written=128)
