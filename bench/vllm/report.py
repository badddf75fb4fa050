"""Joins a published dataset with two runs of bench/timing/measure.py, and says what they show.

    python bench/vllm/report.py RESULTS/DATASET run2.csv run2.spans.csv OUT [--public FOLDER]

Writes OUT/cases.csv, one line a case: the dataset's row or failure, the second run in another order, and
CUPTI's span beside a third measurement; a run that is not there leaves its columns empty. FOLDER holds the
public tables of the same GPU, framework and version (`gemm_perf.parquet`, ...). Nothing is left out of any
figure.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import Counter, defaultdict
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "timing"))

from report import kind, quantile, repeat, rows_of, short, truth

HEAD = [
    "id", "kernel_source", "timing_method", "latency_1", "latency_ci_1", "samples_1", "sm_clock_mhz_1",
    "throttled_1", "failure_1", "latency_2", "sm_clock_mhz_2", "seconds_2", "failure_2", "latency_3",
    "sm_clock_mhz_3", "cupti_span_3", "kernels_per_call",
]  # fmt: skip

NO_KEYS = ("framework", "version", "device", "op_name", "kernel_source")


def dataset_rows(folder: Path) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """Rows and failures by case id, over all tables of a published dataset."""
    rows: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("*_perf.parquet")):
        rows |= {row["case_id"]: {**row, "table": path.stem} for row in pq.read_table(path).to_pylist()}
    failures = {row["case_id"]: row for row in pq.read_table(folder / "failures.parquet").to_pylist()}
    return rows, failures


def joined(
    rows: dict[str, dict[str, Any]], failures: dict[str, dict[str, Any]], second: Path, traced: Path
) -> list[dict[str, str]]:
    run2, run3 = (
        {row["id"]: row for row in rows_of(path)} if path.is_file() else {} for path in (second, traced)
    )
    lines = []
    for case_id in sorted({*rows, *failures}):
        row, failure = rows.get(case_id, {}), failures.get(case_id)
        again, seen = run2.get(case_id, {}), run3.get(case_id, {})
        why = "{class}: {exception}: {message}".format_map(failure) if failure else ""
        line = {
            "id": case_id,
            "kernel_source": row.get("kernel_source", ""),
            "timing_method": row.get("timing_method", ""),
            "failure_1": why,
            "failure_2": again.get("failure", ""),
            "seconds_2": again.get("seconds", ""),
            "kernels_per_call": again.get("kernels_per_call", ""),
            "cupti_span_3": seen.get("spans_ms", ""),
        }
        for name in ("latency", "latency_ci", "samples", "sm_clock_mhz", "throttled"):
            line[f"{name}_1"] = str(row.get(name, ""))
        for run, other in ((2, again), (3, seen)):
            for name in ("latency", "sm_clock_mhz"):
                line[f"{name}_{run}"] = other.get(name, "")
        lines.append({name: short(line[name].partition("\n")[0][:200]) for name in HEAD})
    return lines


def explain(lines: list[dict[str, str]]) -> None:
    print("\n## Failures by class and message")
    for what, count in Counter(line["failure_1"][:110] for line in lines if line["failure_1"]).most_common():
        print(f"{count}: {what}")
    print("methods:", dict(Counter(line["timing_method"] for line in lines if line["timing_method"])))
    sources: dict[str, Counter[str]] = defaultdict(Counter)
    for line in lines:
        if line["latency_1"]:
            sources[kind(line)][line["kernel_source"]] += 1
    for name, counts in sorted(sources.items()):
        print(f"{name}: {dict(counts)}")


def speed(lines: list[dict[str, str]]) -> None:
    print("\n## Speed of the second run: cases a second, without the start")
    seconds: dict[str, list[float]] = defaultdict(list)
    for line in lines:
        if line["seconds_2"]:
            seconds[kind(line)].append(float(line["seconds_2"]))
    for name, values in sorted(seconds.items()):
        rate = len(values) / sum(values)
        print(f"{name}: {len(values)} cases, {rate:.1f} a second, median {median(values):.4f} s")


def against_public(rows: dict[str, dict[str, Any]], folder: Path) -> None:
    """The ratio of our latency to the public one, for keys that both have."""
    print("\n## Ratio to the public tables")
    by_table: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows.values():
        by_table[row["table"]].append(row)
    for table, ours in sorted(by_table.items()):
        path = folder / f"{table}.parquet"
        if not path.is_file():
            print(f"{table}: no public table")
            continue
        public = pq.read_table(path).to_pylist()
        keys = [name for name in public[0] if name not in (*NO_KEYS, "latency", "power", "power_limit")]
        theirs = {tuple(row[name] for name in keys): row["latency"] for row in public}
        ratios: dict[str, list[float]] = defaultdict(list)
        for row in ours:
            if found := theirs.get(tuple(row.get(name) for name in keys)):
                size = "below 20 us" if found < 0.02 else "20 to 200 us" if found < 0.2 else "above 200 us"
                group = kind({"id": row["case_id"]})
                ratios[f"{group} {row['kernel_source']}, {size}"].append(row["latency"] / found)
        for name, values in sorted(ratios.items()):
            p10, p90 = quantile(values, 0.1), quantile(values, 0.9)
            print(f"{name}: {len(values)}, median {median(values):.3f}, p10 {p10:.3f}, p90 {p90:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dataset", type=Path)
    parser.add_argument("second", type=Path)
    parser.add_argument("traced", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--public", type=Path)
    arguments = parser.parse_args()
    rows, failures = dataset_rows(arguments.dataset)
    lines = joined(rows, failures, arguments.second, arguments.traced)
    arguments.out.mkdir(parents=True, exist_ok=True)
    with (arguments.out / "cases.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, HEAD)
        writer.writeheader()
        writer.writerows(lines)
    print(f"{len(rows)} rows, {len(failures)} failures")
    explain(lines)
    truth(lines)
    repeat(lines)
    speed(lines)
    if arguments.public:
        against_public(rows, arguments.public)


if __name__ == "__main__":
    main()
