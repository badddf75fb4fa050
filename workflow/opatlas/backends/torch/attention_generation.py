"""attention_generation: scaled_dot_product_attention of one new token over a contiguous KV cache."""

from __future__ import annotations

from typing import Any

from opatlas.backends.torch.sdpa import attend, implementation, operand_dtype
from opatlas.measuring.call import Call
from opatlas.measuring.device import Device, require_memory
from opatlas.ops.attention_generation.case import Case
from opatlas.ops.attention_generation.inputs import keys_read, kv_bytes

Built = dict[Case, str]


def build(case: Case, device: Device) -> Built:
    """Attention has no weights; what is built up is the implementation that each case got."""
    return {}


def call(built: Built, case: Case, device: Device) -> Call:
    """Each copy is a KV cache [2, batch, keys, kv_heads, head_dim] of the keys that are read.

    A cache of a sliding window keeps no more than the window, as serving frameworks do.
    """
    dtype = operand_dtype(case.dtype, case.kv_dtype, case.variant)
    size = kv_bytes(case, dtype.itemsize)
    copies = device.copies(size)
    query_bytes = case.batch * case.heads * case.head_dim * dtype.itemsize
    sets = device.sets(2 * query_bytes + size)
    require_memory(device, kv_caches=copies * size, q=sets * query_bytes, out=(sets + 1) * query_bytes)
    queries = device.normal((sets, case.batch, 1, case.heads, case.head_dim), dtype)
    queries = queries.transpose(2, 3).unbind(0)
    shape = (2, case.batch, keys_read(case), case.kv_heads, case.head_dim)
    pairs = [cache.transpose(2, 3).unbind(0) for cache in device.normal((copies, *shape), dtype).unbind(0)]
    built[case] = implementation(queries[0], *pairs[0])

    def run(i: int) -> Any:
        return attend(queries[i % sets], *pairs[i % copies])

    return Call(run, copies, size, sets)


def kernel_source(built: Built, case: Case) -> str:
    return built[case]
