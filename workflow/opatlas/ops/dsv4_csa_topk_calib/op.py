"""dsv4_csa_topk_calib for planning and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opatlas.catalogue.models import Model
from opatlas.ops.dsv4_csa_topk_calib.case import Case
from opatlas.ops.long_context import LongContext, read_grid
from opatlas.ops.sparse_kernel import PRECISION, columns, topk_work
from opatlas.ops.spec import Batch, Op, Precision, Table, row_column

RATIO = 4


def expand(grid: LongContext, models: Sequence[Model], precisions: Sequence[Precision]) -> Iterator[Batch]:
    """The points of the model's context and generation modules."""
    for model in models:
        for kernels in model.facts.get("sparse_kernels", ()):
            if kernels.kind != "dsv4":
                continue
            context = grid.context.points(kernels.max_context)
            decode = [(batch, 1, kv_len - 1) for batch, kv_len in grid.ladder.points(kernels.max_context)]
            for kernel, points in (("v1", context), ("v2", decode)):
                heads = [
                    (model.name, model.architecture, p["dtype"], p["kv_dtype"], kernels.heads, kernel)
                    for p in precisions
                ]
                yield Batch(model.name, heads, points)


OP = Op(
    name="dsv4_csa_topk_calib",
    case=Case,
    build=("model", "architecture", "dtype", "kv_dtype", "heads", "kernel"),
    read_grid=read_grid,
    expand=expand,
    work=lambda c: topk_work(c, RATIO),
    table=Table(
        name="dsv4_csa_topk_calib_perf",
        family="sparse_attention",
        op_name="dsv4_csa_topk_calib",
        columns=(*columns(RATIO), row_column("score_mode", "string", "kernel")),
        key=("num_heads", "score_mode", "step", "isl", "batch_size"),
    ),
    precision=PRECISION,
    sweep="long_context",
    rows=2,
    zero=True,
)
