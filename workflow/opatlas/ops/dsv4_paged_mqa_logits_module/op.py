"""dsv4_paged_mqa_logits_module for planning and tables."""

from __future__ import annotations

from typing import NamedTuple

from opatlas.catalogue.reading import sizes
from opatlas.config.document import Section
from opatlas.ops.kernel_case import KernelCase
from opatlas.ops.sparse_kernel import BUILD, PRECISION, columns, expansion, logits_work
from opatlas.ops.spec import Op, Table, field_column

RATIO = 4


class Grid(NamedTuple):
    batch: list[int]
    isl: list[int]
    prefix: list[int]
    new_tokens_max: int
    kv_tokens_max: int


def read_grid(section: Section) -> Grid:
    return Grid(
        sizes(section, "batch"),
        sizes(section, "isl"),
        sizes(section, "prefix", minimum=0),
        section.integer("new_tokens_max", minimum=1),
        section.integer("kv_tokens_max", minimum=1),
    )


def points(grid: Grid, max_context: int) -> list[tuple[int, int, int]]:
    return [
        (batch, isl, prefix)
        for batch in grid.batch
        for isl in grid.isl
        for prefix in grid.prefix
        if batch * isl <= grid.new_tokens_max
        and batch * (prefix + isl) <= grid.kv_tokens_max
        and prefix + isl <= max_context
    ]


OP = Op(
    name="dsv4_paged_mqa_logits_module",
    case=KernelCase,
    build=BUILD,
    read_grid=read_grid,
    expand=expansion("dsv4", points),
    work=lambda c: logits_work(c, RATIO),
    table=Table(
        name="dsv4_paged_mqa_logits_module_perf",
        family="sparse_attention",
        op_name="dsv4_paged_mqa_logits_module",
        columns=columns(RATIO, field_column("local_num_heads", "int64", "heads")),
        key=("num_heads", "tp_size", "step", "isl", "batch_size"),
    ),
    precision=PRECISION,
)
