"""How far two measurements of one case are apart: the audit sample against the published rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opatlas.planning.dataset import PlannedDataset
from opatlas.shards.file import ShardFile
from opatlas.tables import sources

# What of a shard's rows two measurements are compared by.
COMPARED = ["case_id", "part", "latency"]
# Relative differences above this are listed case by case.
NOTABLE = 0.05


def repeatability(
    root: Path, planned: PlannedDataset, first: Mapping[str, list[ShardFile]]
) -> dict[str, Any]:
    """op -> quantiles of |second / first - 1| over the sample, and the cases that stand out.

    `first` holds the shard files of each op whose rows are published.
    """
    found: dict[str, Any] = {}
    for shard in planned.repeats:
        second = _latencies([sources.read(root, shard)])
        earlier = _latencies(first[shard.op], set(shard.ids))
        both = sorted(second.keys() & earlier.keys())
        apart = np.array([abs(second[key] / earlier[key] - 1) for key in both])
        found[shard.op] = {
            "shard": str(shard.path),
            "sampled": len(shard.ids),
            "compared": len(both),
            "p50": _quantile(apart, 50),
            "p95": _quantile(apart, 95),
            "largest": _quantile(apart, 100),
            "notable": [
                {"case": key[0], "first_ms": earlier[key], "second_ms": second[key]}
                for key, difference in zip(both, apart, strict=True)
                if difference > NOTABLE
            ],
        }
    return found


def _latencies(files: list[ShardFile], only: set[str] | None = None) -> dict[tuple[str, str], float]:
    """(case id, part) -> latency in ms."""
    found = {}
    for whole in files:
        rows = whole.rows.select(COMPARED)
        if only is not None:
            rows = rows.filter(pc.is_in(rows["case_id"], pa.array(sorted(only), pa.string())))
        found.update({(row["case_id"], row["part"]): row["latency"] for row in rows.to_pylist()})
    return found


def _quantile(values: Any, percent: float) -> float | None:
    return round(float(np.percentile(values, percent)), 6) if len(values) else None
