"""mamba2 for planning and tables: sweep, work and published columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from opatlas.catalogue.facts import mamba2
from opatlas.catalogue.facts.mamba2 import Mamba2
from opatlas.catalogue.models import Model
from opatlas.config.document import Section
from opatlas.ops.mamba2.case import Case
from opatlas.ops.phases import Phase, phase_columns, read_phases
from opatlas.ops.spec import GRID, Batch, Columns, Op, Precision, Table, Work, constant_column, field_column


class Grid(NamedTuple):
    layers: list[Mamba2]
    phases: list[Phase]


def read_grid(section: Section) -> Grid:
    layers = []
    for record in section.records("layers"):
        layers.append(mamba2.read(record))
        record.done()
    return Grid(layers, read_phases(section))


def expand(grid: Grid, models: Sequence[Model], precisions: Sequence[Precision]) -> Iterator[Batch]:
    """The sweep's own layers, then each model's, over phases."""
    layers = [(GRID, layer) for layer in grid.layers]
    layers += [(model.name, layer) for model in models for layer in model.facts.get("mamba2", ())]
    for owner, layer in layers:
        for phase in grid.phases:
            heads = [(precision["dtype"], phase.name, *layer) for precision in precisions]
            yield Batch(owner, heads, phase.points())


def work(c: Columns) -> Work:
    """Convolution and scan of one layer; the state of each head is [head_dim, state] in FP32."""
    tokens = 1.0 * c["batch"] * c["seq"]
    inner = c["heads"] * c["head_dim"]
    channels = inner + 2 * c["groups"] * c["state"]
    return Work(
        flops=tokens * (2.0 * channels * c["conv"] + 6.0 * inner * c["state"]),
        weight_bytes=2.0 * channels * c["conv"],
        kv_bytes=4.0 * c["batch"] * inner * c["state"],
        activation_bytes=2.0 * tokens * (2 * channels + inner),
    )


OP = Op(
    name="mamba2",
    case=Case,
    build=("dtype", "phase", "d_model", "state", "conv", "heads", "head_dim", "groups", "chunk"),
    read_grid=read_grid,
    expand=expand,
    work=work,
    table=Table(
        name="mamba2_perf",
        family="linear_attention",
        op_name="mamba2",
        columns=(
            *phase_columns(),
            field_column("d_model", "int64"),
            field_column("d_state", "int64", "state"),
            field_column("d_conv", "int64", "conv"),
            field_column("nheads", "int64", "heads"),
            field_column("head_dim", "int64"),
            field_column("n_groups", "int64", "groups"),
            field_column("chunk_size", "int64", "chunk"),
            constant_column("model_name", "string", ""),
        ),
        key=(
            "kernel_source",
            "phase",
            "d_model",
            "d_state",
            "d_conv",
            "nheads",
            "head_dim",
            "n_groups",
            "chunk_size",
            "batch_size",
            "seq_len",
        ),
    ),
    rows=2,
)
