"""The plan as files: one parquet and one CSV per op, a row a case, and plan.json."""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from opatlas.config.datasets import RESULTS
from opatlas.files import swap_in
from opatlas.planning.dataset import PlannedDataset
from opatlas.planning.plan import OpPlan
from opatlas.shards.queue import build_name
from opatlas.staleness.fingerprint import SHORT


def write_plan(root: Path, planned: PlannedDataset) -> Path:
    """Writes the plan's folder and makes it the one that results/plans/<dataset> names."""
    name = f"{planned.dataset.name}-{planned.plan_fingerprint[:SHORT]}"
    folder = root / RESULTS / ".plans" / name
    if not folder.exists():
        building = folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:8]}.tmp")
        building.mkdir(parents=True)
        for op in planned.plan.ops:
            table = op_table(planned, op)
            pq.write_table(table, building / f"{op.op.name}.parquet", compression="zstd")
            pa_csv.write_csv(table, building / f"{op.op.name}.csv")
        document = json.dumps(summary(planned), indent=1)
        (building / "plan.json").write_text(document + "\n", encoding="utf-8")
        (building / f".plan-{planned.plan_fingerprint[:SHORT]}").touch()
        try:
            building.rename(folder)
        except OSError:
            # Another run has just written the same plan.
            shutil.rmtree(building)
    swap_in(folder, root / planned.dataset.plan_target)
    return folder


def op_table(planned: PlannedDataset, op: OpPlan) -> pa.Table:
    """One row a case: id, fields, build, owners, shard."""
    shard_of = {case_id: shard.key for shard in planned.shards_of(op.op.name) for case_id in shard.ids}
    columns: dict[str, Any] = {"case_id": pa.array(op.ids, pa.string())}
    columns |= {field: pa.array(values.tolist()) for field, values in op.columns.items()}
    columns["build"] = pa.array([build_name(op, case) for case in op.cases], pa.string())
    columns["owners"] = pa.array([",".join(op.owners[case]) for case in op.cases], pa.string())
    columns["shard"] = pa.array([shard_of.get(case_id) for case_id in op.ids], pa.string())
    return pa.table(columns)


def summary(planned: PlannedDataset) -> dict[str, Any]:
    """plan.json: counts, skips, shards, and `case_plan_hash`."""
    plan = planned.plan
    return {
        "dataset": planned.dataset.name,
        "case_plan_hash": plan.case_plan_hash,
        "plan_fingerprint": planned.plan_fingerprint,
        "cases": plan.cases,
        "seed": planned.config.settings.seed,
        "ops": {
            op.op.name: {
                "cases": len(op.cases),
                "runner": op.runner,
                "runtime": op.runtime.identity,
                "shards": [
                    {"shard": shard.key, "cases": len(shard.ids), "seconds": round(sum(shard.costs_s), 1)}
                    for shard in planned.shards_of(op.op.name)
                ],
                "left_out": [
                    {"rule": entry.rule, "reason": entry.reason, "cases": entry.cases}
                    for entry in op.left_out
                ],
                "cut_by_subset": op.cut,
            }
            for op in plan.ops
        },
        "pinned_elsewhere": list(plan.pinned_elsewhere),
    }
