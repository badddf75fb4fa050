"""What the two per-head products of latent attention share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opatlas.catalogue.models import Model
from opatlas.catalogue.reading import sizes
from opatlas.config.document import Section
from opatlas.ops.bmm_case import BmmCase
from opatlas.ops.dtypes import element_bytes
from opatlas.ops.spec import Batch, Columns, Op, Precision, Table, Work, field_column


def bmm_op(name: str, op_name: str, read: int, written: int) -> Op:
    """The op that multiplies a head's `read` values by a matrix to `written` ones."""

    def work(c: Columns) -> Work:
        size, rows = element_bytes(c["dtype"]), 1.0 * c["heads"] * c["tokens"]
        return Work(
            flops=2.0 * rows * read * written,
            weight_bytes=size * c["heads"] * read * written,
            kv_bytes=0.0 * rows,
            activation_bytes=rows * (size * read + 2 * written),
        )

    return Op(
        name=name,
        case=BmmCase,
        build=("dtype", "heads"),
        read_grid=_read_grid,
        expand=_expand,
        work=work,
        table=Table(
            name="mla_bmm_perf",
            family="mla_bmm",
            op_name=op_name,
            columns=(
                field_column("bmm_dtype", "string", "dtype"),
                field_column("num_tokens", "int64", "tokens"),
                field_column("num_heads", "int64", "heads"),
            ),
            key=("bmm_dtype", "op_name", "num_heads", "num_tokens"),
        ),
    )


def _read_grid(section: Section) -> list[int]:
    return sizes(section, "tokens")


def _expand(tokens: list[int], models: Sequence[Model], precisions: Sequence[Precision]) -> Iterator[Batch]:
    """The head counts of every latent-attention block that is served as a module."""
    for model in models:
        for module in model.facts.get("attention_module", ()):
            if module.kind == "mla":
                heads = [(p["dtype"], module.heads // tp) for p in precisions for tp in module.tp]
                yield Batch(model.name, heads, [(m,) for m in tokens])
