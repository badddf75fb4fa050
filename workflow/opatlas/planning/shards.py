"""Cuts the cases of an op into shards: by content, whole builds, near a target time.

A build's place is a hash of its fields. Shards are the leaves of a binary tree over those hashes: a
leaf that holds more than the target splits into its two halves. So a case that comes or goes touches
the leaf it falls into, and no other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from opatlas.config.datasets import RESULTS, Dataset
from opatlas.config.platforms import Platform
from opatlas.harness.ticket import Key
from opatlas.ops.spec import Array
from opatlas.planning.plan import OpPlan
from opatlas.staleness.fingerprint import SHORT, Context, shard_fingerprint

HASH_BITS = 64
# Seconds that a case holds the device beside its calls (build, capture, settling), and how many calls
# of it are made, on a GPU and on the CPU.
GPU_OVERHEAD_S, GPU_CALLS = 0.03, 300
CPU_OVERHEAD_S, CPU_CALLS = 0.3, 20


@dataclass(frozen=True)
class Shard:
    """The unit of scheduling: one job, on one device or on as many as its cases span.

    `ids` and `costs_s` (seconds on the device) are in the order of the plan. `generations` counts how
    often `retry` asked for a case again.
    """

    dataset: Dataset
    op: str
    name: str
    context: Context
    ids: tuple[str, ...]
    costs_s: tuple[float, ...]
    generations: Mapping[str, int]
    gpus: int = 1

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """What each outcome of this shard must belong to, in the order of `ids`."""
        return tuple(Key(case_id, self.generations.get(case_id, 0)) for case_id in self.ids)

    @cached_property
    def fingerprint(self) -> str:
        """The identity of the shard's content: its context and its cases, in any order."""
        return shard_fingerprint(self.context, self.keys)

    @property
    def key(self) -> str:
        """<shard>-<fingerprint>, the stem of every file of this shard."""
        return f"{self.name}-{self.fingerprint[:SHORT]}"

    @property
    def path(self) -> Path:
        return RESULTS / "shards" / self.dataset.base / self.op / f"{self.key}.parquet"

    @property
    def attempts(self) -> Path:
        """The folder of the shard's journals and logs."""
        return RESULTS / "attempts" / self.dataset.base / self.op / self.key


def costs(op: OpPlan, platform: Platform) -> Array:
    """Seconds that each case holds the device: a constant beside the op, plus its work."""
    overhead, calls = (CPU_OVERHEAD_S, CPU_CALLS) if platform.sm is None else (GPU_OVERHEAD_S, GPU_CALLS)
    lowest = min(platform.peaks.flops.values())
    peak = np.array([platform.peaks.flops.get(dtype, lowest) for dtype in op.columns[op.op.dtype]])
    work = op.work
    moved = work.moved_bytes + work.activation_bytes
    seconds: Array = overhead + calls * np.maximum(work.flops / peak, moved / platform.peaks.bytes_per_s)
    return seconds


def gpus_of(op: OpPlan, members: Any = slice(None)) -> int:
    """How many devices these cases of an op need, all of them by default: what their field `gpus` says."""
    return int(op.columns["gpus"][members].max()) if "gpus" in op.op.fields else 1


def cut(
    dataset: Dataset, op: OpPlan, context: Context, target_s: float, generations: Mapping[str, int]
) -> list[Shard]:
    """The shards of one op, in the order of their names, each near `target_s` seconds on the device."""
    cost = costs(op, dataset.platform)
    places, builds = _builds(op)
    sums = [float(cost[members].sum()) for members in builds]
    ids = op.ids
    shards = []
    for name, first, last in _leaves(places, sums, target_s):
        members = np.sort(np.concatenate(builds[first:last]))
        own = tuple(map(ids.__getitem__, members.tolist()))
        again = {case_id: generations[case_id] for case_id in own if case_id in generations}
        seconds = tuple(cost[members].tolist())
        shards.append(Shard(dataset, op.op.name, name, context, own, seconds, again, gpus_of(op, members)))
    return shards


def _builds(op: OpPlan) -> tuple[list[int], list[Array]]:
    """The place of each build, in rising order, and the indices of its cases."""
    columns = [op.columns[name] for name in op.op.build]
    order, starts = op.build_order
    groups = np.split(order, starts[1:]) if len(order) else []
    named = [
        (_place(op.op.name, [column[members[0]] for column in columns]), number)
        for number, members in enumerate(groups)
    ]
    named.sort()
    return [place for place, _ in named], [groups[number] for _, number in named]


def _place(op: str, build: Sequence[Any]) -> int:
    text = "/".join([op, *map(str, build)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[: HASH_BITS // 8], "big")


def _leaves(places: Sequence[int], sums: Sequence[float], target: float) -> Iterator[tuple[str, int, int]]:
    """(name, first, last) of each leaf over sorted places; the name is s and the bits that lead to it."""
    total = np.concatenate([[0.0], np.cumsum(sums)])

    def split(bits: str, first: int, last: int) -> Iterator[tuple[str, int, int]]:
        if first == last:
            return
        if last - first == 1 or total[last] - total[first] <= target or len(bits) == HASH_BITS:
            yield f"s{bits}", first, last
            return
        middle = (int(bits or "0", 2) * 2 + 1) << (HASH_BITS - len(bits) - 1)
        border = int(np.searchsorted(np.array(places[first:last], dtype=np.uint64), np.uint64(middle)))
        yield from split(f"{bits}0", first, first + border)
        yield from split(f"{bits}1", first + border, last)

    yield from split("", 0, len(places))
