"""What gdn and kda share: expansion over models, work, and the columns of their tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opatlas.catalogue.models import Model
from opatlas.ops.delta_rule_case import DeltaRuleCase
from opatlas.ops.phases import Phase, phase_columns, read_phases
from opatlas.ops.spec import (
    Batch,
    Columns,
    Expansion,
    Op,
    Precision,
    Table,
    Work,
    constant_column,
    field_column,
)

LAYER = ("phase", "d_model", "conv", "k_heads", "k_dim", "v_heads", "v_dim")


def delta_rule_op(name: str, family: str) -> Op:
    """The op of the layers of this kind; a row for the convolution and one for the recurrence."""
    return Op(
        name=name,
        case=DeltaRuleCase,
        build=("dtype", *LAYER),
        read_grid=read_phases,
        expand=_expansion(name),
        work=_work,
        table=Table(
            name=f"{name}_perf",
            family=family,
            op_name=name,
            columns=(
                *phase_columns(),
                field_column("d_model", "int64"),
                field_column("d_conv", "int64", "conv"),
                field_column("num_k_heads", "int64", "k_heads"),
                field_column("head_k_dim", "int64", "k_dim"),
                field_column("num_v_heads", "int64", "v_heads"),
                field_column("head_v_dim", "int64", "v_dim"),
                constant_column("model_name", "string", ""),
            ),
            key=(
                "kernel_source",
                "phase",
                "d_model",
                "d_conv",
                "num_k_heads",
                "head_k_dim",
                "num_v_heads",
                "head_v_dim",
                "batch_size",
                "seq_len",
            ),
        ),
        rows=2,
    )


def _expansion(kind: str) -> Expansion:
    def expand(
        phases: list[Phase], models: Sequence[Model], precisions: Sequence[Precision]
    ) -> Iterator[Batch]:
        for model in models:
            for layer in model.facts.get("delta_rule", ()):
                if layer.kind != kind:
                    continue
                for phase in phases:
                    heads = [
                        (
                            *(precision["dtype"], phase.name, layer.d_model, layer.conv),
                            *(layer.k_heads // tp, layer.k_dim, layer.v_heads // tp, layer.v_dim),
                        )
                        for precision in precisions
                        for tp in layer.tp
                    ]
                    yield Batch(model.name, heads, phase.points())

    return expand


def _work(c: Columns) -> Work:
    """Convolution and recurrence of one layer; the state of each head is [k_dim, v_dim] in FP32."""
    tokens = 1.0 * c["batch"] * c["seq"]
    channels = 2 * c["k_heads"] * c["k_dim"] + c["v_heads"] * c["v_dim"]
    state = 1.0 * c["v_heads"] * c["k_dim"] * c["v_dim"]
    return Work(
        flops=tokens * (2.0 * channels * c["conv"] + 6.0 * state),
        weight_bytes=2.0 * channels * c["conv"],
        kv_bytes=4.0 * c["batch"] * state,
        activation_bytes=2.0 * tokens * (2 * channels + c["v_heads"] * c["v_dim"]),
    )
