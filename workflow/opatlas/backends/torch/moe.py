"""moe: router, top-k, permutation, grouped expert matmuls and combination, in plain PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from opatlas.backends.torch.dtypes import torch_dtype
from opatlas.measuring.call import Call
from opatlas.measuring.device import Device, require_memory
from opatlas.measuring.errors import Unsupported
from opatlas.ops.moe import inputs
from opatlas.ops.moe.case import Case


@dataclass(frozen=True)
class Built:
    """Weights of one rank, a tuple of copies each: router [experts, hidden], the joined gate and up
    projection [local experts, hidden, 2 * local inter] and down [local experts, local inter, hidden].
    """

    router: Any
    up: Any
    down: Any


def build(case: Case, device: Device) -> Built:
    dtype = torch_dtype(case.dtype)
    if case.dtype == "fp8":
        raise Unsupported("torch._grouped_mm takes no fp8 operands")
    if case.routing or case.activation:
        raise Unsupported(
            "the layer written here has a softmax router and gated SiLU experts, "
            f"not {' and '.join(filter(None, (case.routing, case.activation)))}"
        )
    local, inter = inputs.local_experts(case), inputs.local_inter(case)
    # One token reads the fewest weights, and must find them cold too.
    fewest = -(-case.topk // case.ep)
    held = _bytes(case, local, dtype.itemsize)
    copies = device.copies(_bytes(case, fewest, dtype.itemsize), held)
    require_memory(device, weights=copies * held)

    def weights(*shape: int) -> Any:
        return device.normal((copies, *shape), dtype, inputs.WEIGHT_SCALE).unbind(0)

    return Built(
        weights(case.experts, case.hidden),
        weights(local, case.hidden, 2 * inter),
        weights(local, inter, case.hidden),
    )


def call(built: Built, case: Case, device: Device) -> Call:
    dtype = built.up[0].dtype
    local, inter = inputs.local_experts(case), inputs.local_inter(case)
    assignment = inputs.assignment(case)
    rows = int((assignment < local).sum())
    x_bytes = case.tokens * case.hidden * dtype.itemsize
    busy = len(set(assignment[assignment < local].tolist()))
    read = _bytes(case, busy, dtype.itemsize)
    sets = device.sets(2 * x_bytes + read)
    require_memory(
        device,
        x=sets * x_bytes,
        out=(sets + 1) * x_bytes,
        expert_rows=rows * (2 * case.hidden + 3 * inter) * dtype.itemsize,
        router=2 * case.tokens * case.experts * dtype.itemsize,
    )
    copies = len(built.up)
    xs = device.normal((sets, case.tokens, case.hidden), dtype).unbind(0)
    # The generated routing enters as the router's bias, so that the real router and top-k run and
    # still decide as generated: the product with the weights is far smaller than LIFT.
    bias = torch.zeros(case.tokens, case.experts)
    bias.scatter_(1, torch.from_numpy(assignment), inputs.LIFT * case.hidden**0.5)
    bias = bias.to(device=device.torch_device, dtype=dtype)
    experts = torch.arange(local, device=device.torch_device)

    def run(i: int) -> Any:
        copy, x = i % copies, xs[i % sets]
        logits = torch.addmm(bias, x, built.router[copy].t())
        gates, chosen = torch.topk(logits, case.topk, dim=-1)
        gates = torch.softmax(gates, dim=-1, dtype=torch.float32).to(dtype)
        # Slots sorted by expert; those of this rank's experts come first.
        ordered, slots = torch.sort(chosen.view(-1), stable=True)
        slots = slots[:rows]
        ends = torch.searchsorted(ordered, experts, right=True).to(torch.int32)
        tokens = slots // case.topk
        gate, up = _grouped(x[tokens], built.up[copy], ends).chunk(2, dim=-1)
        out = _grouped(torch.nn.functional.silu(gate) * up, built.down[copy], ends)
        out = out * gates.view(-1)[slots].unsqueeze(-1)
        return torch.zeros_like(x).index_add_(0, tokens, out)

    return Call(run, copies, read, sets)


def kernel_source(built: Built, case: Case) -> str:
    return "torch._grouped_mm" if built.up[0].is_cuda else "torch.matmul"


def _grouped(rows: Any, weights: Any, ends: Any) -> Any:
    """rows[start:end] @ weights[e] for the rows of each expert e, which end at ends[e]."""
    if rows.is_cuda:
        return torch._grouped_mm(rows, weights, offs=ends)
    out = rows.new_empty(rows.shape[0], weights.shape[2])
    start = 0
    for expert, end in enumerate(ends.tolist()):
        if end > start:
            torch.matmul(rows[start:end], weights[expert], out=out[start:end])
        start = end
    return out


def _bytes(case: Case, experts: int, itemsize: int) -> int:
    """Bytes of the router and of so many experts of this rank."""
    expert = 3 * inputs.local_inter(case) * case.hidden
    return (experts * expert + case.experts * case.hidden) * itemsize
