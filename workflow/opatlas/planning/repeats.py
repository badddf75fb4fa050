"""The audit sample: cases of a dataset that are measured once more, by another process, at its end.

How far both values are apart is the dataset's stated repeatability. The second value is never published
as a row, and the first one never stands for it.
"""

from __future__ import annotations

import zlib
from dataclasses import replace

from opatlas.config.datasets import Dataset
from opatlas.config.settings import RunSettings
from opatlas.planning.plan import OpPlan
from opatlas.planning.shards import Shard, costs, gpus_of
from opatlas.staleness.fingerprint import context

# The generation of a repeated case: no retry ever reaches it.
GENERATION = -1
NAME = "r"


def repeat_shard(dataset: Dataset, op: OpPlan, settings: RunSettings) -> Shard | None:
    """The shard of an op's repeated cases; None where the sample is empty.

    On a GPU its cases are also held until their settled state (`latency_sustained`).
    """
    chosen = [index for index, case_id in enumerate(op.ids) if drawn(case_id, settings)]
    if not chosen:
        return None
    measure = replace(settings.measure, sustained=dataset.platform.sm is not None)
    cost = costs(op, dataset.platform) + (measure.sustained_s if measure.sustained else 0.0)
    ids = tuple(op.ids[index] for index in chosen)
    return Shard(
        dataset,
        op.op.name,
        NAME,
        context(dataset, op.op.name, op.runtime, measure),
        ids,
        tuple(float(cost[index]) for index in chosen),
        dict.fromkeys(ids, GENERATION),
        gpus_of(op, chosen),
    )


def drawn(case_id: str, settings: RunSettings) -> bool:
    """Whether the seed draws a case; each is drawn by itself, so others that come or go don't matter."""
    return zlib.crc32(f"{settings.seed}/{case_id}".encode()) < settings.audit_share * 2**32
