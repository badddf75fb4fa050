"""mhc_module for planning and tables: sweep, work and published columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from opatlas.catalogue.models import Model
from opatlas.catalogue.reading import sizes
from opatlas.config.document import Section
from opatlas.ops.mhc_module.case import Case
from opatlas.ops.spec import Array, Batch, Column, Columns, Op, Precision, Table, Work, field_column

# A layer has one site of these; the others stand around its attention and around its feed-forward block.
ONCE = ("expand", "contract")


def read_grid(section: Section) -> list[int]:
    return sizes(section, "tokens")


def expand(tokens: list[int], models: Sequence[Model], precisions: Sequence[Precision]) -> Iterator[Batch]:
    for model in models:
        for streams in model.facts.get("mhc", ()):
            heads = [
                (
                    *(model.architecture, precision["dtype"], site),
                    *(streams.hidden, streams.streams, streams.sinkhorn),
                )
                for precision in precisions
                for site in streams.sites
            ]
            yield Batch(model.name, heads, [(m,) for m in tokens])


def work(c: Columns) -> Work:
    """Streams are read and written, and projected on their mixing coefficients."""
    values = 1.0 * c["tokens"] * c["streams"] * c["hidden"]
    coefficients = c["streams"] * (c["streams"] + 2)
    return Work(
        flops=2.0 * values * coefficients,
        weight_bytes=0.0 * values,
        kv_bytes=0.0 * values,
        activation_bytes=4.0 * values,
    )


def _sites(c: Columns) -> Array:
    return np.where(np.isin(c["site"].astype(str), ONCE), 1, 2)


OP = Op(
    name="mhc_module",
    case=Case,
    build=("architecture", "dtype", "site", "hidden", "streams", "sinkhorn"),
    read_grid=read_grid,
    expand=expand,
    work=work,
    table=Table(
        name="mhc_module_perf",
        family="mhc",
        op_name="mhc_module",
        columns=(
            field_column("op_name", "string", "site"),
            field_column("architecture", "string"),
            field_column("num_tokens", "int64", "tokens"),
            Column("num_sites", "int64", _sites),
            field_column("hc_mult", "int64", "streams"),
            field_column("hidden_size", "int64", "hidden"),
            field_column("sinkhorn_iters", "int64", "sinkhorn"),
        ),
        key=("op_name", "hc_mult", "hidden_size", "num_tokens"),
    ),
)
