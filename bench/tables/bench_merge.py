"""Time and memory of merging and checking a full dataset: made-up rows for every case of a plan."""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import shutil
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from opatlas.catalogue import load as catalogue
from opatlas.checks.run import check_dataset
from opatlas.config import datasets
from opatlas.planning.dataset import PlannedDataset
from opatlas.planning.plan import make_plan
from opatlas.planning.shards import cut
from opatlas.shards import file
from opatlas.staleness.fingerprint import context
from opatlas.tables.merge import merge_dataset

REPOSITORY = Path(__file__).parents[2]


def grow(root: Path, rows: int) -> Path:
    """A copy of config/ and cases/ whose gemm table alone has at least so many rows."""
    for part in ("config", "cases"):
        shutil.copytree(REPOSITORY / part, root / part)
    path = root / "cases/ops/gemm.yaml"
    grid = yaml.safe_load(path.read_text(encoding="utf-8"))
    grid["tokens"] = list(range(1, 1 + -(-rows // len(grid["features"]) ** 2)))
    path.write_text(yaml.safe_dump(grid), encoding="utf-8")
    return root


def planned(tree: Path, name: str, rows: int) -> PlannedDataset:
    """The first `rows` cases of a dataset's plan, every op with a runner; `tree` has config/ and cases/."""
    config = datasets.load(tree)
    cases = catalogue.load(tree)
    dataset = config.dataset(name)
    plan = make_plan(config, cases, dataset, dict.fromkeys(cases.ops(dataset.backend), True))
    ops = []
    for op in sorted(plan.ops, key=lambda op: op.op.name != "gemm"):
        kept = np.arange(min(rows, len(op.rows)))
        if op.op.rows == 1 and len(kept):
            ops.append(replace(op, rows=op.rows.take(kept), owner_index=op.owner_index[kept]))
            rows -= len(kept)
    plan = replace(plan, ops=tuple(ops))
    shards = []
    for op in plan.ops:
        own = context(dataset, op.op.name, op.runtime, config.settings.measure)
        shards += cut(dataset, op, own, config.settings.shard_minutes * 60, {})
    return PlannedDataset(config, plan, tuple(shards))


def write_shards(root: Path, dataset: PlannedDataset) -> None:
    runtimes = {op.op.name: op.runtime for op in dataset.plan.ops}
    for index, shard in enumerate(dataset.shards):
        place = {
            "attempt": f"a{index}",
            "job_id": str(4000 + index),
            "node": f"node{index % 8}",
            "device": dataset.dataset.platform.gpu or "cpu",
            "gpu_uuid": f"GPU-{index % 8}",
            "framework_version": dataset.dataset.version,
            "image_digest": runtimes[shard.op].digest,
        }
        rows = [{**_row(key.case, number), **place} for number, key in enumerate(shard.keys)]
        attempt = {"id": f"a{index}", "versions": {"framework": dataset.dataset.version}, "facts": {}}
        manifest = {
            "dataset": shard.dataset.base,
            "op": shard.op,
            "shard": shard.name,
            "fingerprint": shard.fingerprint,
            "context": dict(shard.context.parts),
            "context_fingerprint": shard.context.fingerprint,
            "cases": len(shard.keys),
            "attempts": [attempt],
            "controls": [],
        }
        file.write(root / shard.path, rows, [], manifest)


def _row(case_id: str, number: int) -> dict[str, Any]:
    return {
        "case_id": case_id,
        "generation": 0,
        "part": "",
        "kernel_source": "source",
        "latency": 10 + number * 1e-4,
        "latency_mad": 1e-4 + number * 1e-9,
        "latency_ci": 1e-4 + number * 1e-9,
        "samples": 40 + number % 100,
        "stop_reason": "converged",
        "timing_method": "cuda_graph",
        "sm_clock_mhz": 1900.0 + number % 80,
        "throttled": False,
        "kernels": [f"kernel_{number % 300}", "reduce"],
        "notes": '{"calls_per_graph": 8, "copies": 12, "bytes_between_uses": 123456789}',
    }


def merge_and_check(root: Path, tree: Path, name: str, rows: int) -> str:
    dataset = planned(tree, name, rows)
    # Planning has a benchmark of its own.
    print(f"plan {dataset.fingerprint[:16]}", flush=True)
    start, busy = time.perf_counter(), time.process_time()
    record = merge_dataset(dataset, root / "tables", root)
    merged = time.perf_counter()
    report = check_dataset(dataset, root / "tables")
    checked = time.perf_counter()
    cpu = time.process_time() - busy
    count = sum(table["rows"] for table in record["tables"].values())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    lines = [
        f"{count} rows of {len(dataset.shards)} shards: merged in {merged - start:.1f} s, "
        f"checked in {checked - merged:.1f} s ({cpu:.1f} s of CPU), peak memory {peak:.0f} MiB"
    ]
    return "\n".join([*lines, *(f"blocking: {finding.message}" for finding in report.blocking)])


def write_all(root: Path, tree: Path, name: str, rows: int) -> None:
    write_shards(root, planned(tree, name, rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", default="trtllm/1.3.0rc20/sm90")
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--one-table", action="store_true", help="all rows in gemm_perf, its grid grown")
    arguments = parser.parse_args()
    processes = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="opatlas-bench-") as folder:
        root = Path(folder)
        tree = grow(root, arguments.rows) if arguments.one_table else REPOSITORY
        for step in (write_all, merge_and_check):
            # A process for each step, so that the memory is that of merging and checking alone.
            with ProcessPoolExecutor(1, processes) as pool:
                found = pool.submit(step, root, tree, arguments.dataset, arguments.rows).result()
    print(found)


if __name__ == "__main__":
    main()
