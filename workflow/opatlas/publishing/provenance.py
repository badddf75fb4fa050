"""provenance.json: everything that is needed to defend a number of a dataset."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from opatlas.planning.dataset import PUBLISHING, PlannedDataset
from opatlas.planning.plan import OpPlan
from opatlas.staleness import code

FORMAT = 1


def document(
    planned: PlannedDataset,
    record: Mapping[str, Any],
    files: Mapping[str, bytes],
    reasons: Iterable[str],
    revision: str | None,
) -> dict[str, Any]:
    """`record` is what merge noted, `files` the dataset's other files; `reasons` say why it is partial."""
    dataset, settings, plan = planned.dataset, planned.config.settings, planned.plan
    platform = dataset.platform
    return {
        "format": FORMAT,
        "dataset": dataset.name,
        "backend": dataset.backend,
        "version": dataset.version,
        "platform": {
            "name": platform.name,
            "sm": platform.sm,
            "system": platform.system,
            "gpu": platform.gpu,
        },
        "subset": asdict(dataset.subset) if dataset.subset else None,
        "partial": list(reasons),
        "fingerprint": planned.fingerprint,
        "plan_fingerprint": planned.plan_fingerprint,
        "case_plan_hash": plan.case_plan_hash,
        "collector_ref": revision,
        "seed": settings.seed,
        "shard_minutes": settings.shard_minutes,
        "overrides": dict(settings.overrides),
        "measure": settings.measure.to_dict(),
        "publishing": settings.publishing(),
        "ops": {op.op.name: _op(op) for op in plan.ops},
        "planned_without_runner": {
            op.op.name: len(op.rows) for op in plan.ops if len(op.rows) and not op.runner
        },
        "pinned_elsewhere": list(plan.pinned_elsewhere),
        "tables": record["tables"],
        "contexts": record["contexts"],
        "made_by": made_by(planned),
        "kernels": record["kernels"],
        "relabelled": record["relabelled"],
        "repeatability": record["repeatability"],
        "shards": record["shards"],
        "attempts": record["attempts"],
        "files": {name: hashlib.sha256(files[name]).hexdigest() for name in sorted(files)},
    }


def made_by(planned: PlannedDataset) -> dict[str, str]:
    """Module -> hash of what made the dataset of its rows."""
    return code.closure((*PUBLISHING, *(f"opatlas.ops.{op.op.name}.op" for op in planned.plan.ops)))


def _op(op: OpPlan) -> dict[str, Any]:
    return {
        "table": op.op.table.name,
        "cases": len(op.rows),
        "cut_by_subset": op.cut,
        "image": op.runtime.image,
        "tag": op.runtime.tag,
        "unverified": op.unverified,
        "left_out": [
            {"rule": entry.rule, "reason": entry.reason, "cases": entry.cases} for entry in op.left_out
        ],
    }
