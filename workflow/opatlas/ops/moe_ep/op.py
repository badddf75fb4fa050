"""moe_ep for planning and tables: sweep, work and published columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from opatlas.catalogue.facts.moe import Moe
from opatlas.catalogue.models import Model
from opatlas.catalogue.reading import sizes
from opatlas.config.document import Section
from opatlas.errors import UserError
from opatlas.ops.dtypes import ACTIVATIONS, element_bytes
from opatlas.ops.moe_ep.case import Case
from opatlas.ops.spec import Batch, Columns, Op, Precision, Table, Work, constant_column, field_column

BALANCED = "_eplb"


class Phase(NamedTuple):
    """What is asked in one phase; tokens are those of one rank where `per_rank` says so.

    `eplb_slots` are the numbers of expert copies that the balancer is asked for beside one per expert;
    None where experts stay where the checkpoint has them.
    """

    tokens: list[int]
    per_rank: bool
    distributions: list[str]
    eplb_slots: list[int] | None


class Grid(NamedTuple):
    ep: list[int]
    phases: dict[str, Phase]


def read_grid(section: Section) -> Grid:
    phases = {}
    for name, part in section.section("phases").sections():
        phases[name] = Phase(
            sizes(part, "tokens"),
            part.flag("per_rank"),
            part.texts("distributions"),
            sizes(part, "eplb_slots") if "eplb_slots" in part else None,
        )
        part.done()
    return Grid(sizes(section, "ep"), phases)


def expand(grid: Grid, models: Sequence[Model], precisions: Sequence[Precision]) -> Iterator[Batch]:
    """Each widely spread layer in its precisions, over ranks, placements and token counts."""
    for model in models:
        for layer in model.facts.get("moe", ()):
            for precision in precisions:
                if layer.wide_ep and precision["dtype"] in (layer.dtypes or ()):
                    yield from _batches(grid, model.name, layer, precision["dtype"], precision["phase"])


def _batches(grid: Grid, owner: str, layer: Moe, dtype: str, name: str) -> Iterator[Batch]:
    if name not in grid.phases:
        known = ", ".join(grid.phases)
        raise UserError(f"cases/backends.yaml: moe_ep: cases/ops/moe_ep.yaml has no phase {name!r} ({known})")
    phase = grid.phases[name]
    for ep in grid.ep:
        if layer.experts % ep:
            continue
        for distribution, slots in _placements(layer, phase, ep):
            placement = distribution if phase.eplb_slots is not None else ""
            sizes_ = (layer.hidden, layer.inter, layer.topk, layer.experts, slots, ep)
            totals = [(tokens * ep if phase.per_rank else tokens,) for tokens in phase.tokens]
            tail = (placement, layer.routing, layer.activation)
            yield Batch(owner, [(dtype, *sizes_, name, distribution)], totals, tail)


def _placements(layer: Moe, phase: Phase, ep: int) -> Iterator[tuple[str, int]]:
    """(distribution, slots): as the checkpoint has them, then balanced over as many or more slots."""
    for distribution in phase.distributions:
        yield distribution, layer.experts
        if phase.eplb_slots is not None:
            for slots in [layer.experts, *(slots for slots in phase.eplb_slots if slots > layer.experts)]:
                if slots % ep == 0:
                    yield distribution + BALANCED, slots


def work(c: Columns) -> Work:
    """An even share of the pairs, and at most as many experts as there are pairs."""
    size = element_bytes(c["dtype"])
    activation = element_bytes([ACTIVATIONS.get(dtype, dtype) for dtype in c["dtype"]])
    pairs = c["tokens"] * c["topk"] / c["ep"]
    weights = 3.0 * c["hidden"] * c["inter"]
    touched = np.minimum(c["experts"] / c["ep"], np.maximum(pairs, 1.0))
    return Work(
        flops=2.0 * pairs * weights,
        weight_bytes=size * weights * touched,
        kv_bytes=0.0 * pairs,
        activation_bytes=2 * activation * pairs * c["hidden"],
    )


OP = Op(
    name="moe_ep",
    case=Case,
    build=(
        *("dtype", "hidden", "inter", "topk", "experts", "slots", "ep"),
        *("placement", "routing", "activation"),
    ),
    read_grid=read_grid,
    expand=expand,
    work=work,
    table=Table(
        name="moe_expert_compute_perf",
        family="moe",
        op_name="moe_ep",
        columns=(
            field_column("moe_dtype", "string", "dtype"),
            field_column("distribution", "string"),
            field_column("inference_phase", "string", "phase"),
            field_column("num_tokens", "int64", "tokens"),
            field_column("hidden_size", "int64", "hidden"),
            field_column("inter_size", "int64", "inter"),
            field_column("topk", "int64"),
            field_column("num_experts", "int64", "experts"),
            field_column("num_slots", "int64", "slots"),
            constant_column("moe_tp_size", "int64", 1),
            field_column("moe_ep_size", "int64", "ep"),
        ),
        key=(
            *("kernel_source", "moe_dtype", "distribution", "inference_phase", "topk", "num_experts"),
            *("num_slots", "hidden_size", "inter_size", "moe_tp_size", "moe_ep_size", "num_tokens"),
        ),
    ),
    precision=("dtype", "phase"),
)
