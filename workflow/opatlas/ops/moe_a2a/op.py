"""moe_a2a for planning and tables: sweep, work and published columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from opatlas.catalogue.models import Model
from opatlas.catalogue.reading import sizes
from opatlas.config.document import Section
from opatlas.errors import UserError
from opatlas.ops.moe_a2a.case import Case
from opatlas.ops.spec import Batch, Columns, Op, Precision, Table, Work, field_column, row_column


class Mode(NamedTuple):
    sms: list[int]
    tokens: list[int]


class Grid(NamedTuple):
    ep: list[int]
    nodes: list[int]
    modes: dict[str, Mode]


def read_grid(section: Section) -> Grid:
    modes = {}
    for name, part in section.section("modes").sections():
        modes[name] = Mode(sizes(part, "sms", minimum=0), sizes(part, "tokens"))
        part.done()
    return Grid(sizes(section, "ep"), sizes(section, "nodes"), modes)


def expand(grid: Grid, models: Sequence[Model], precisions: Sequence[Precision]) -> Iterator[Batch]:
    """Widely spread layers over ranks and nodes that hold as many experts each; a name ends with its mode."""
    for model in models:
        for layer in model.facts.get("moe", ()):
            for precision in precisions if layer.wide_ep else ():
                mode = _mode(grid, precision["comm"])
                shape = (
                    precision["dtype"],
                    precision["comm"],
                    precision["wire"],
                    layer.hidden,
                    layer.topk,
                    layer.experts,
                )
                worlds = [
                    (ep, nodes)
                    for ep, nodes in product(grid.ep, grid.nodes)
                    if layer.experts % ep == 0 and layer.experts % nodes == 0
                ]
                heads = [(*shape, *world) for world in worlds]
                yield Batch(model.name, heads, list(product(mode.sms, mode.tokens)))


def _mode(grid: Grid, comm: str) -> Mode:
    name = comm.rpartition("_")[2]
    if name not in grid.modes:
        known = ", ".join(f"..._{mode}" for mode in grid.modes)
        where = "cases/backends.yaml: moe_a2a.comm"
        raise UserError(f"{where}: {comm!r} ends with no mode of cases/ops/moe_a2a.yaml ({known})")
    return grid.modes[name]


def work(c: Columns) -> Work:
    """Every token's copies are read and written on one way; links bound it, not memory."""
    moved = 2.0 * 2 * c["tokens"] * c["topk"] * c["hidden"]
    return Work(0.0 * moved, 0.0 * moved, 0.0 * moved, moved)


OP = Op(
    name="moe_a2a",
    case=Case,
    build=("dtype", "comm", "wire", "hidden", "topk", "experts", "ep", "nodes"),
    read_grid=read_grid,
    expand=expand,
    work=work,
    table=Table(
        name="moe_a2a_perf",
        family="comm",
        op_name="moe_a2a",
        columns=(
            field_column("comm_backend", "string", "comm"),
            row_column("phase", "string"),
            field_column("comm_dtype", "string", "wire"),
            field_column("ep_size", "int64", "ep"),
            field_column("node_num", "int64", "nodes"),
            field_column("hidden_size", "int64", "hidden"),
            field_column("topk", "int64"),
            field_column("num_experts", "int64", "experts"),
            field_column("num_tokens", "int64", "tokens"),
            field_column("sms", "int64"),
        ),
        key=(
            *("comm_backend", "phase", "comm_dtype", "ep_size", "node_num", "hidden_size"),
            *("topk", "num_experts", "sms", "num_tokens"),
        ),
        measured=(("transmit_us", "us"), ("notify_us", "us"), ("latency", "us")),
    ),
    precision=("dtype", "comm", "wire"),
    rows=2,
)
