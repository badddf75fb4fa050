"""Writes the cases of a subset with their work, one line a case, as bench/timing/measure.py takes them.

python bench/vllm/draw.py vllm/0.24.0/sm90 OUT.csv subset=NAME ops=gemm,... limit_per_op=300
python bench/vllm/draw.py ... --first 60 OUT.csv ...      only the first so many of each op, by the seed
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "workflow"))

from opatlas.planning.dataset import load  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dataset")
    parser.add_argument("out", type=Path)
    parser.add_argument("overrides", nargs="+", metavar="KEY=VALUE")
    parser.add_argument("--first", type=int)
    arguments = parser.parse_args()
    overrides: dict[str, Any] = {}
    for pair in arguments.overrides:
        key, _, value = pair.partition("=")
        overrides[key] = yaml.safe_load(value)
    planned = load(ROOT, f"{arguments.dataset}@{overrides['subset']}", overrides)
    seed = planned.config.settings.seed
    print(f"seed {seed}, {planned.plan.case_plan_hash}")
    with arguments.out.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "flops", "weight_and_kv_bytes"])
        for op in planned.plan.ops:
            work = op.work
            rows = [
                (case_id, int(work.flops[i]), int(work.moved_bytes[i])) for i, case_id in enumerate(op.ids)
            ]
            rows.sort(key=lambda row: hashlib.sha256(f"{seed}/{row[0]}".encode()).digest())
            writer.writerows(rows[: arguments.first])
            print(f"{op.op.name}: {len(rows[: arguments.first])} of {len(rows)}")


if __name__ == "__main__":
    main()
