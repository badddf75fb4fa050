"""Draws cases of a dataset's plan by a seed and writes them with their work, one line a case.

    python bench/timing/draw.py torch/2.11.0/sm90 --seed 7 \
        --take gemm:bfloat16:160 --take attention_context:bfloat16:80 > cases.csv

The draw is by rank of sha256(seed/id), so anybody with the same plan draws the same cases.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "workflow"))

from opatlas.planning.dataset import load  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dataset")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--take", action="append", required=True, metavar="OP:DTYPE:COUNT")
    arguments = parser.parse_args()
    plan = load(ROOT, arguments.dataset).plan
    print(f"seed {arguments.seed}, {plan.case_plan_hash}", file=sys.stderr)
    writer = csv.writer(sys.stdout)
    writer.writerow(["id", "flops", "weight_and_kv_bytes"])
    for take in arguments.take:
        name, dtype, count = take.split(":")
        op = next(op for op in plan.ops if op.op.name == name)
        work = op.work
        rows = [
            (case_id, int(work.flops[i]), int(work.moved_bytes[i]))
            for i, (case_id, case) in enumerate(zip(op.ids, op.cases, strict=True))
            if case.dtype == dtype
        ]
        rows.sort(key=lambda row: hashlib.sha256(f"{arguments.seed}/{row[0]}".encode()).digest())
        writer.writerows(rows[: int(count)])
        print(f"{take}: {min(int(count), len(rows))} of {len(rows)}", file=sys.stderr)


if __name__ == "__main__":
    main()
