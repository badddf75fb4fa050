"""Turns runs of measure.py into one table, and says what they show.

    python bench/timing/report.py FOLDER --merge run1.csv run2.csv traced.csv
    python bench/timing/report.py FOLDER

FOLDER holds cases.csv (written by --merge: two runs in different orders, and one with CUPTI's spans),
ceilings.csv and samples.csv of studies.py. Nothing is left out of any figure.
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import chain
from math import ceil
from pathlib import Path

SHARED = ["id", "flops", "weight_and_kv_bytes", "kernel_source", "kernels_per_call", "timing_method"]
EACH = ["position", "latency", "latency_ci", "samples", "sm_clock_mhz", "throttled", "seconds", "failure"]


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def merge(folder: Path, first: Path, second: Path, traced: Path) -> None:
    runs = [{row["id"]: row for row in rows_of(path)} for path in (first, second, traced)]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "cases.csv").open("w", newline="") as file:
        head = SHARED + [f"{name}_{run}" for run in (1, 2, 3) for name in EACH] + ["cupti_span_3"]
        writer = csv.DictWriter(file, head)
        writer.writeheader()
        for case_id, row in sorted(runs[0].items()):
            merged = {name: row[name] for name in SHARED}
            for number, run in enumerate(runs, 1):
                merged |= {f"{name}_{number}": short(run[case_id][name]) for name in EACH}
            merged["cupti_span_3"] = runs[2][case_id]["spans_ms"]
            writer.writerow(merged)


def short(value: str) -> str:
    """A number to six figures, anything else as it is."""
    try:
        return f"{float(value):.6g}"
    except ValueError:
        return value


def quantile(values: Sequence[float], share: float) -> float:
    """Nearest rank: the smallest value that at least this share of all do not exceed."""
    return sorted(values)[ceil(share * len(values)) - 1]


def kind(row: dict[str, str]) -> str:
    op, dtype = row["id"].split("/")[:2]
    return f"{op} {dtype.partition('=')[2]}"


def truth(rows: list[dict[str, str]]) -> None:
    print("\n## Truth: latency against CUPTI's first start to last end")
    good: dict[str, list[bool]] = defaultdict(list)
    for row in rows:
        if row["cupti_span_3"]:
            latency, span = float(row["latency_3"]), float(row["cupti_span_3"])
            within = abs(latency - span) <= max(0.03 * span, 0.001)
            good[kind(row)].append(within)
            if not within:
                print(f"{row['id']}: {latency * 1e3:.2f} us, CUPTI {span * 1e3:.2f} us,", end=" ")
                print(f"{row['kernels_per_call']} kernels, {row['sm_clock_mhz_3']} MHz")
    for name, flags in sorted(good.items()):
        print(f"{name}: {sum(flags)} of {len(flags)}")
    flags = [flag for each in good.values() for flag in each]
    print(f"all: {sum(flags)} of {len(flags)} = {sum(flags) / max(len(flags), 1):.2%}")
    print("methods:", dict(Counter(row["timing_method"] or row["failure_1"][:60] for row in rows)))


def repeat(rows: list[dict[str, str]]) -> None:
    print("\n## Repeat: run 1 against run 2, another process and order")
    apart: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row["latency_1"] and row["latency_2"]:
            first, second = float(row["latency_1"]), float(row["latency_2"])
            apart[kind(row)].append(abs(first / second - 1))
            if apart[kind(row)][-1] > 0.05:
                print(f"{row['id']}: {first * 1e3:.2f} and {second * 1e3:.2f} us,", end=" ")
                print(f"{row['sm_clock_mhz_1']} and {row['sm_clock_mhz_2']} MHz")
    for name, values in [*sorted(apart.items()), ("all", list(chain(*apart.values())))]:
        line = ", ".join(
            f"p{share * 100:g} {quantile(values, share):.2%}" for share in (0.5, 0.9, 0.95, 0.99)
        )
        print(f"{name}: {len(values)} cases, {line}, worst {max(values):.2%}")


def physics(rows: list[dict[str, str]], ceilings: list[dict[str, str]]) -> None:
    print("\n## Physics: share of the measured ceilings")
    best: dict[str, float] = defaultdict(float)
    for row in ceilings:
        name = row["what"].split()[0]
        best[name] = max(best[name], float(row["rate"].split()[0]))
    print(", ".join(f"{name} {rate:.0f}" for name, rate in best.items()), "(TFLOP/s; GB/s)")
    stream = max(best["copy"], best["read"])
    shares: dict[str, list[tuple[float, float, str]]] = defaultdict(list)
    for row in rows:
        for run in (1, 2, 3):
            if row[f"latency_{run}"]:
                seconds = float(row[f"latency_{run}"]) * 1e-3
                dtype = "fp8" if "dtype=fp8" in row["id"] else "bfloat16"
                compute = float(row["flops"]) / seconds * 1e-12 / best[dtype]
                memory = float(row["weight_and_kv_bytes"]) / seconds * 1e-9 / stream
                shares[kind(row)].append((compute, memory, row["id"]))
    for name, values in sorted(shares.items()):
        compute, memory = max(values), max(values, key=lambda value: value[1])
        print(f"{name}: at most {compute[0]:.1%} of TFLOP/s ({compute[2]}),", end=" ")
        print(f"{memory[1]:.1%} of GB/s ({memory[2]})")


def speed(rows: list[dict[str, str]]) -> None:
    print("\n## Speed: cases a second, without the start")
    for run in (1, 2):
        seconds: dict[str, list[float]] = defaultdict(list)
        for row in rows:
            if row[f"seconds_{run}"]:
                seconds[row["id"].partition("_")[0].partition("/")[0]].append(float(row[f"seconds_{run}"]))
        for name, values in sorted(seconds.items()):
            print(f"run {run}: {name} {len(values)} cases, {len(values) / sum(values):.1f} a second")


def samples(rows: list[dict[str, str]]) -> None:
    print("\n## Samples: the median of the first n against that of 100")
    cases: dict[str, dict[int, dict[str, str]]] = defaultdict(dict)
    for row in rows:
        cases[row["id"]][int(row["n"])] = row
    full = [case for case in cases.values() if 100 in case]
    for n in sorted(full[0]):
        off = [abs(float(c[n]["median_ms"]) / float(c[100]["median_ms"]) - 1) for c in full]
        widths = [float(case[n]["interval_share"]) for case in full]
        times = [float(case[n]["seconds"]) for case in full]
        print(
            f"n={n}: {len(full)} cases, off p50 {quantile(off, 0.5):.2%}, p95 {quantile(off, 0.95):.2%}; "
            f"width of the interval p50 {quantile(widths, 0.5):.2%}, p95 {quantile(widths, 0.95):.2%}; "
            f"at most 1 % wide {sum(w <= 0.01 for w in widths) / len(widths):.0%}; "
            f"{quantile(times, 0.5) * 1e3:.1f} ms"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--merge", nargs=3, type=Path)
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    if arguments.merge:
        merge(folder, *arguments.merge)
    rows = rows_of(folder / "cases.csv")
    print(f"{len(rows)} cases, {sum(bool(row['failure_1']) for row in rows)} without a row")
    truth(rows)
    repeat(rows)
    physics(rows, rows_of(folder / "ceilings.csv"))
    speed(rows)
    samples(rows_of(folder / "samples.csv"))


if __name__ == "__main__":
    main()
