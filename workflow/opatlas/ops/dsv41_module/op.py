"""dsv41_module for planning and tables: sweep, work and published columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from opatlas.catalogue.models import Model
from opatlas.catalogue.reading import sizes
from opatlas.config.document import Section
from opatlas.ops.dsv41_module.case import Case
from opatlas.ops.spec import Batch, Columns, Op, Precision, Table, Work, field_column, row_column

PROFILES = ("full", "decoder_bounded")


class Grid(NamedTuple):
    profiles: list[str]
    batch: list[int]
    query: list[int]
    prefix: list[int]
    decode_steps: int


def read_grid(section: Section) -> Grid:
    profiles = section.texts("profiles")
    for profile in profiles:
        if profile not in PROFILES:
            section.wrong("profiles", f"there is no profile {profile!r}; known: {', '.join(PROFILES)}")
    return Grid(
        profiles,
        sizes(section, "batch"),
        sizes(section, "query"),
        sizes(section, "prefix", minimum=0),
        section.integer("decode_steps", minimum=1),
    )


def expand(grid: Grid, models: Sequence[Model], precisions: Sequence[Precision]) -> Iterator[Batch]:
    points = list(product(grid.batch, grid.query, grid.prefix, [grid.decode_steps]))
    for model in models:
        for layer in model.facts.get("dsv41", ()):
            heads = [
                (
                    *(model.name, precision["dtype"], profile),
                    *(layer.hidden, layer.heads // tp, layer.head_dim, tp),
                )
                for precision, profile, tp in product(precisions, grid.profiles, layer.tp)
            ]
            yield Batch(model.name, heads, points)


def work(c: Columns) -> Work:
    """Attention of every token over all before it, one latent per token; the projections are left out."""
    tokens = 1.0 * c["batch"] * (c["query"] + c["steps"])
    seen = c["prefix"] + c["query"] / 2.0
    return Work(
        flops=4.0 * tokens * seen * c["heads"] * c["head_dim"],
        weight_bytes=0.0 * tokens,
        kv_bytes=0.0 * tokens,
        activation_bytes=4.0 * tokens * c["hidden"],
    )


OP = Op(
    name="dsv41_module",
    case=Case,
    build=("model", "dtype", "profile", "hidden", "heads", "head_dim", "tp"),
    read_grid=read_grid,
    expand=expand,
    work=work,
    table=Table(
        name="dsv41_module_perf",
        family="dsv41",
        op_name="dsv41_module",
        columns=(
            row_column("component", "string"),
            row_column("geometry", "string", "tp"),
            field_column("batch_size", "int64", "batch"),
            field_column("prefix", "int64"),
            field_column("x", "int64", "query"),
            field_column("execution_profile", "string", "profile"),
        ),
        key=("component", "geometry", "execution_profile", "batch_size", "prefix", "x"),
        prefix=False,
    ),
    rows=0,
)
