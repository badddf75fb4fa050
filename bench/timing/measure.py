"""Measures the cases of a CSV in a shuffled order in this process, and says where the time goes.

    python bench/timing/measure.py cases.csv --order 1 --out run1.csv [--spans | --spans-of some.csv]
                                   [--sustained] [--seconds 200]

`--spans` adds CUPTI's own figure for each case, from the same graphs right after they were measured;
the break-down of the time is then of no use. `--spans-of` does so for the cases of another CSV, after
all have been measured without, and writes them beside OUT (run1.spans.csv). A case that yields no row
is written with its failure; what was not reached in the time allowed is left out, and counted.
"""

from __future__ import annotations

import argparse
import csv
import functools
import importlib
import json
import os
import random
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

BEGAN = time.perf_counter()
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "workflow"))

from opatlas.measuring import cuda, work  # noqa: E402
from opatlas.measuring.bursts import BurstTimer  # noqa: E402
from opatlas.measuring.settings import Settings  # noqa: E402
from opatlas.measuring.statistics import median  # noqa: E402
from opatlas.ops.ids import parse_id  # noqa: E402

COLUMNS = [
    "id", "flops", "weight_and_kv_bytes", "position", "latency", "latency_mad", "latency_ci",
    "samples", "stop_reason", "timing_method", "sm_clock_mhz", "throttled", "latency_sustained",
    "sm_clock_sustained_mhz", "calls_per_sample", "bytes_between_uses", "evicted", "void_samples",
    "repeated_sets", "throttle_reasons", "kernel_source", "kernels_per_call", "kernel", "seconds",
    "spans_ms", "failure",
]  # fmt: skip


class StopWatch:
    """Seconds spent inside functions that are wrapped, their inner wrapped calls taken out."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.part = ""
        self._inner = [0.0]

    def wrap(self, owner: Any, name: str, label: str) -> None:
        function = getattr(owner, name)

        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            begin = time.perf_counter()
            self._inner.append(0.0)
            try:
                return function(*args, **kwargs)
            finally:
                whole = time.perf_counter() - begin
                self.seconds[f"{self.part}: {label}"] += whole - self._inner.pop()
                self._inner[-1] += whole

        setattr(owner, name, timed)


def watch() -> StopWatch:
    clock = StopWatch()
    clock.wrap(cuda, "run_guarded", "first run and input guard")
    clock.wrap(cuda.CudaDevice, "_size", "estimate")
    clock.wrap(BurstTimer, "rest", "rests at a low clock")
    clock.wrap(BurstTimer, "_wait", "waiting for the duty")
    clock.wrap(work, "Graph", "capture")
    clock.wrap(work, "sampled", "plain run for comparison")
    clock.wrap(work, "require_recomputed", "poison, replay, compare")
    clock.wrap(cuda, "measure_work", "sampling loop")
    clock.wrap(BurstTimer, "time", "bursts")
    clock.wrap(cuda, "captured", "kernel names and the rest of preparation")
    clock.wrap(work.Work, "release", "release of graphs")
    return clock


def measure(device: Any, backend: str, row: dict[str, str], spans: bool) -> dict[str, Any]:
    op, case = parse_id(row["id"])
    runner = importlib.import_module(f"opatlas.backends.{backend}.{op}")
    begin = time.perf_counter()
    try:
        device.check_alone()
        built = runner.build(case, device)
        call = runner.call(built, case, device)
        measured, traced = device.cross_check(call) if spans else (device.measure(call), [])
        device.synchronize()
        seconds = time.perf_counter() - begin
        source = runner.kernel_source(built, case)
    except Exception as error:
        return {**row, "failure": f"{type(error).__name__}: {error}".partition("\n")[0][:300]}
    finally:
        device.reset()
    values = {key: value for key, value in vars(measured).items() if key in COLUMNS}
    notes = {key: value for key, value in measured.notes.items() if key in COLUMNS}
    return {
        **row, **values, **notes,
        "kernel_source": source,
        "kernels_per_call": len(measured.kernels),
        "kernel": (measured.kernels or ("",))[0][:100],
        "seconds": round(seconds, 5),
        "spans_ms": median(traced) if traced else None,
    }  # fmt: skip


def write(path: Path, results: list[dict[str, Any]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(results)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cases", type=Path)
    parser.add_argument("--backend", default="torch")
    parser.add_argument("--order", type=int, required=True, help="seed of the order")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--spans", action="store_true")
    parser.add_argument("--spans-of", type=Path, help="CSV of the cases to look at by CUPTI as well")
    parser.add_argument("--sustained", action="store_true")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no case after so many")
    arguments = parser.parse_args()
    with arguments.cases.open() as file:
        rows = list(csv.DictReader(file))
    random.Random(arguments.order).shuffle(rows)
    looked_at: set[str] = set()
    if arguments.spans_of:
        with arguments.spans_of.open() as file:
            looked_at = {row["id"] for row in csv.DictReader(file)}
    runtime = importlib.import_module(f"opatlas.backends.{arguments.backend}.runtime")
    device = runtime.device(Settings(sustained=arguments.sustained), {"sm": 90})
    device.synchronize()
    print(f"start-up {time.perf_counter() - BEGAN:.2f} s, order seed {arguments.order}")
    print(json.dumps(device.facts()))
    clock = watch()
    results: list[dict[str, Any]] = []
    for position, row in enumerate(rows):
        if time.perf_counter() - BEGAN > arguments.seconds:
            break
        clock.part = row["id"].partition("/")[0]
        results.append({**measure(device, arguments.backend, row, arguments.spans), "position": position})
    clock.part = "spans"
    looks = [
        {**measure(device, arguments.backend, row, True), "position": position}
        for position, row in enumerate(rows)
        if row["id"] in looked_at and time.perf_counter() - BEGAN < arguments.seconds
    ]
    times: dict[str, list[float]] = defaultdict(list)
    for result in results:
        if result.get("seconds"):
            times[result["id"].partition("/")[0]].append(result["seconds"])
    for op, seconds in times.items():
        whole, count = sum(seconds), len(seconds)
        print(f"{op}: {count} cases, {count / whole:.1f} a second, median {median(seconds):.4f} s")
        parts = {key: part for key, part in clock.seconds.items() if key.startswith(f"{op}: ")}
        parts[f"{op}: building inputs and all else"] = whole - sum(parts.values())
        for label, part in sorted(parts.items(), key=lambda item: -item[1]):
            print(f"  {label}: {part / count * 1e3:.3f} ms a case, {part / whole:.1%}")
    write(arguments.out, results)
    if arguments.spans_of:
        write(arguments.out.with_suffix(".spans.csv"), looks)
    failures = [result["failure"] for result in results if "failure" in result]
    print(f"{len(results) - len(failures)} rows, {len(failures)} failures", *failures, sep="\n  ")
    print(f"not reached: {len(rows) - len(results)}", flush=True)
    os._exit(0)  # as a worker ends: nothing that a framework leaves behind is waited for


if __name__ == "__main__":
    main()
