"""CUDA graphs of several calls, and the kernels that they really hold."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch

from opatlas.measuring.errors import InvalidMeasurement

NAME_LENGTH = 240
"""Characters of a kernel's name that are kept: enough to tell families and tile sizes apart."""

_NODE_KINDS = {1: "memcpy", 2: "memset", 3: "host", 4: "child_graph"}


_unfinished: list[Any] = []


class NotCaptured(Exception):
    """The call does something that a CUDA graph cannot hold."""


class _KernelParams(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2 of cuda.h."""

    _fields_ = (
        ("func", ctypes.c_void_p),
        ("sizes", ctypes.c_uint * 7),
        ("kernel_params", ctypes.c_void_p),
        ("extra", ctypes.c_void_p),
        ("kern", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
    )


class Graph:
    """`run(i)` for each i of `order`, captured on the current stream with memory of `pool`.

    NotCaptured where that is impossible; `pool` is then spent. `nodes` holds the name of each kernel,
    copy or fill, in order of capture; `output` is what the last call returned: the memory that each
    replay fills. Calls write to `outputs` places in turn, and one more.
    """

    def __init__(self, run: Callable[[int], Any], order: Sequence[int], pool: Any, outputs: int = 1) -> None:
        self.order = tuple(order)
        kept: deque[Any] = deque(maxlen=outputs)
        self._graph = torch.cuda.CUDAGraph(keep_graph=True)
        self._graph.capture_begin(pool=pool, capture_error_mode="thread_local")
        try:
            try:
                for i in order:
                    self.output = run(i)
                    kept.append(self.output)
            finally:
                self._end_capture(pool)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            raise NotCaptured(str(error).partition("\n")[0]) from error
        self.nodes = node_names(self._graph.raw_cuda_graph())
        self._graph.instantiate()

    def _end_capture(self, pool: Any) -> None:
        """Ends the capture, or what PyTorch leaves open when that fails.

        Its allocators would go on recording for the pool by asking this graph; so the graph is kept
        and the pool must not be used again. Random number generators believe themselves captured
        until the next capture that succeeds.
        """
        try:
            self._graph.capture_end()
        except RuntimeError:
            device = torch.cuda.current_device()
            torch._C._cuda_endAllocateToPool(device, pool)
            torch._C._cuda_releasePool(device, pool)
            _unfinished.append(self._graph)
            raise

    def replay(self) -> None:
        self._graph.replay()

    def release(self) -> None:
        """Gives the graph and its private memory back."""
        self.output = None
        self._graph.reset()


def kernels_of_a_call(graphs: Sequence[tuple[Sequence[str], int]]) -> tuple[str, ...]:
    """The nodes of one call, given (nodes, calls) of each graph.

    InvalidMeasurement("no_write") unless every call of every graph has the same: a launch that is
    missing from some was not captured, or was saved by remembering an earlier result.
    """
    nodes, calls = graphs[0]
    per_call = tuple(nodes[: len(nodes) // calls])
    for nodes, calls in graphs:
        if not per_call or tuple(nodes) != per_call * calls:
            raise InvalidMeasurement(
                "no_write",
                f"{calls} captured calls left {len(nodes)} kernels, not the same ones for each",
            )
    return per_call


def node_names(graph: int) -> tuple[str, ...]:
    """Names of the nodes of a cudaGraph_t, in the order in which they were captured."""
    lib = _libcuda()
    count = ctypes.c_size_t()
    handle = ctypes.c_void_p(graph)
    _must(lib.cuGraphGetNodes(handle, None, ctypes.byref(count)))
    if not count.value:
        return ()
    nodes = (ctypes.c_void_p * count.value)()
    _must(lib.cuGraphGetNodes(handle, nodes, ctypes.byref(count)))
    return tuple(_node_name(ctypes.c_void_p(node)) for node in nodes)


def _node_name(node: ctypes.c_void_p) -> str:
    lib = _libcuda()
    kind = ctypes.c_int()
    _must(lib.cuGraphNodeGetType(node, ctypes.byref(kind)))
    if kind.value:
        return _NODE_KINDS.get(kind.value, f"node_{kind.value}")
    params = _KernelParams()
    _must(lib.cuGraphKernelNodeGetParams_v2(node, ctypes.byref(params)))
    return _kernel_name(params.func, params.kern)


@cache
def _kernel_name(func: int | None, kern: int | None) -> str:
    name = ctypes.c_char_p()
    if func:
        _must(_libcuda().cuFuncGetName(ctypes.byref(name), ctypes.c_void_p(func)))
    else:
        _must(_libcuda().cuKernelGetName(ctypes.byref(name), ctypes.c_void_p(kern)))
    return demangle((name.value or b"").decode())[:NAME_LENGTH]


def demangle(name: str) -> str:
    """A C++ name as it is written in source; any other name as it is."""
    demangler = _libstdcxx().__cxa_demangle
    demangler.restype = ctypes.c_char_p
    status = ctypes.c_int()
    plain = demangler(name.encode(), None, None, ctypes.byref(status))
    return plain.decode() if status.value == 0 and plain else name


@cache
def _libcuda() -> Any:
    return ctypes.CDLL("libcuda.so.1")


@cache
def _libstdcxx() -> Any:
    return ctypes.CDLL("libstdc++.so.6")


def _must(code: int) -> None:
    if code:
        raise OSError(f"libcuda: error {code} while reading a graph")
