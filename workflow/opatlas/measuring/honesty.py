"""That a call really works on random values and really computes its output each time."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from opatlas.measuring.errors import InvalidMeasurement

LOOKED_AT = 4096
"""Elements of a tensor that are compared or looked at."""

SMALLEST = 64
"""Smaller tensors (scales, biases of a head) may be constant."""

AGREEMENT = 0.05
"""Relative difference, in norm, up to which two runs count as the same computation."""


def tensors(value: Any) -> list[Any]:
    """The non-empty tensors in a nest of tuples, lists and dicts."""
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor) and leaf.numel()]


def evenly(tensor: Any) -> Any:
    """At most LOOKED_AT elements spread evenly over the tensor, as float32."""
    step = tensor.numel() // LOOKED_AT | 1  # odd, so as not to stay in one column
    return tensor.detach().flatten()[::step][:LOOKED_AT].float()


class _Inputs(TorchDispatchMode):  # type: ignore[misc]
    """Collects the tensors that are read by the operations of a block but not made in it."""

    def __init__(self) -> None:
        super().__init__()
        self.read: dict[int, Any] = {}
        self._made: dict[int, weakref.ref[Any]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        for position, argument in enumerate(func._schema.arguments):
            value = args[position] if position < len(args) else kwargs.get(argument.name)
            written = argument.alias_info is not None and argument.alias_info.is_write
            for tensor in tensors(value):
                if written:
                    self._note_made(tensor)
                elif not self._is_made(tensor):
                    self.read[id(tensor)] = tensor
        result = func(*args, **kwargs)
        for tensor in tensors(result):
            self._note_made(tensor)
        return result

    def _note_made(self, tensor: Any) -> None:
        self._made[id(tensor)] = weakref.ref(tensor)

    def _is_made(self, tensor: Any) -> bool:
        made = self._made.get(id(tensor))
        return made is not None and made() is tensor


def run_guarded(run: Callable[[], Any]) -> Any:
    """Runs once; InvalidMeasurement("constant_input") if a floating-point input is constant.

    Matrix products of zeros or constants draw less power and so run faster than real ones.
    Inputs are those of operations that PyTorch dispatches; buffers that are written do not count.
    """
    with _Inputs() as inputs:
        output = run()
    looked = [
        (tensor, evenly(tensor))
        for tensor in inputs.read.values()
        if tensor.is_floating_point() and tensor.numel() >= SMALLEST
    ]
    if looked:
        spread = torch.stack([values.max() - values.min() for _, values in looked]).tolist()
        for (tensor, _), width in zip(looked, spread, strict=True):
            if width == 0:
                shape = "x".join(map(str, tensor.shape))
                raise InvalidMeasurement(
                    "constant_input", f"an input of shape {shape}, {tensor.dtype}, is constant"
                )
    return output


def poison(output: Any) -> None:
    """Overwrites the output with NaN (integers: their largest value)."""
    for tensor in tensors(output):
        if tensor.is_floating_point() and tensor.element_size() == 1:
            tensor.view(torch.uint8).fill_(0xFF)  # NaN in every 8-bit format that has one
        elif tensor.is_floating_point() or tensor.is_complex():
            tensor.fill_(float("nan"))
        elif tensor.dtype is not torch.bool:
            tensor.fill_(torch.iinfo(tensor.dtype).max)


def _unwritten(output: Any) -> list[Any]:
    """For each tensor a scalar that is true where poison, or anything not finite, is left."""
    checks = []
    for tensor in tensors(output):
        if tensor.is_floating_point():
            values = tensor.float() if tensor.element_size() == 1 else tensor
            checks.append(~torch.isfinite(values.sum(dtype=torch.float32)))
        elif tensor.dtype is not torch.bool:
            checks.append((tensor == torch.iinfo(tensor.dtype).max).all())
    return checks


def sampled(output: Any) -> list[Any]:
    """A few thousand values of each tensor, kept apart from it."""
    return [evenly(tensor).clone() for tensor in tensors(output)]


def require_recomputed(expected: list[Any], target: Any, again: Callable[[], Any]) -> None:
    """InvalidMeasurement("no_write") unless `again()` computes its output anew.

    `target` is what an earlier run returned, or the memory that a graph writes; it is poisoned. What
    `again` then returns must be whole, finite, and agree with `expected`, a plain run's `sampled`.
    """
    if not expected:
        raise InvalidMeasurement("no_write", "the call returns no tensor that could be checked")
    poison(target)
    output = again()
    unwritten = torch.stack(_unwritten(output)).any()
    apart = [
        (evenly(tensor) - old).norm() > AGREEMENT * old.norm()
        for old, tensor in zip(expected, tensors(output), strict=True)
    ]
    left, differs = torch.stack([unwritten, torch.stack(apart).any()]).tolist()
    if left:
        raise InvalidMeasurement("no_write", "the output is not finite, or a repetition left poison in it")
    if differs:
        raise InvalidMeasurement("no_write", "a repetition computed other values than a plain run")
