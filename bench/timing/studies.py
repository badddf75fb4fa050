"""Three small studies of the timer on a GPU; each writes a CSV into a folder.

python bench/timing/studies.py ceilings OUT            large products and a large copy
python bench/timing/studies.py cold OUT                one product with cold and with hot weights
python bench/timing/studies.py samples OUT --cases cases.csv --order 1
                                                       medians of the first n of many samples
"""

from __future__ import annotations

import argparse
import csv
import importlib
import random
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "workflow"))

import torch
from opatlas.backends.torch import gemm
from opatlas.measuring import work
from opatlas.measuring.call import Call
from opatlas.measuring.cuda import CudaDevice
from opatlas.measuring.errors import InvalidMeasurement, KernelLimit
from opatlas.measuring.sampling import Sample, Sampler
from opatlas.measuring.settings import Settings
from opatlas.measuring.statistics import median, median_interval
from opatlas.ops.gemm.case import Case
from opatlas.ops.ids import parse_id

MB = 10**6
READ = """
extern "C" __global__ void read(const float4* __restrict__ x, float* sums, int n) {
    float sum = 0;
    int threads = gridDim.x * blockDim.x, thread = blockIdx.x * blockDim.x + threadIdx.x, i = thread;
    for (; i + 3 * threads < n; i += 4 * threads) {
        float4 a = x[i], b = x[i + threads], c = x[i + 2 * threads], d = x[i + 3 * threads];
        sum += a.x + a.y + a.z + a.w + b.x + b.y + b.z + b.w;
        sum += c.x + c.y + c.z + c.w + d.x + d.y + d.z + d.w;
    }
    for (; i < n; i += threads) sum += x[i].x + x[i].y + x[i].z + x[i].w;
    sums[thread] = sum;
}
"""
"""Reads memory and does next to nothing else: what a decode kernel could reach at best."""

COUNTS = (6, 10, 15, 30, 100)
MOST_SECONDS = 2.0


def write(out: Path, name: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    with (out / name).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        for row in rows:
            writer.writerow(row)
            print(*row, flush=True)


def ceilings(device: CudaDevice) -> Iterable[Sequence[Any]]:
    for dtype in ("bfloat16", "fp8"):
        for m, n, k in ((4096, 8192, 8192), (8192, 8192, 8192), (8192, 16384, 8192)):
            case = Case(dtype, m, n, k)
            row = device.measure(gemm.call(gemm.build(case, device), case, device))
            device.reset()
            tflops = 2 * m * n * k / row.latency * 1e-9
            yield f"{dtype} {m}x{n}x{k}", row.latency, f"{tflops:.1f} TFLOP/s", row.sm_clock_mhz
    for size in (256 * MB, 1024 * MB, 4096 * MB):
        source = device.normal((size // 4,), torch.float32)
        target = torch.empty_like(source)
        row = device.measure(Call(lambda i, s=source, t=target: t.copy_(s)))
        device.reset()
        gbs = 2 * size / row.latency * 1e-6
        yield f"copy of {size // MB} MB", row.latency, f"{gbs:.0f} GB/s read and written", row.sm_clock_mhz

    read = torch.cuda._compile_kernel(READ, "read")
    for size in (4096 * MB, 8192 * MB):
        source = device.normal((size // 4,), torch.float32)
        for blocks in (528, 16896):
            sums = torch.empty(blocks * 256, device=device.torch_device)

            def run(i: int, s: Any = source, t: Any = sums, grid: int = blocks) -> Any:
                read((grid, 1, 1), (256, 1, 1), (s, t, s.numel() // 4))
                return t

            row = device.measure(Call(run))
            gbs = size / row.latency * 1e-6
            what = f"read of {size // MB} MB in {blocks} blocks"
            yield what, row.latency, f"{gbs:.0f} GB/s read", row.sm_clock_mhz
        device.reset()


def cold(device: CudaDevice) -> Iterable[Sequence[Any]]:
    k = 4096
    for megabytes in (0.5, 1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 200):
        case = Case("bfloat16", 1, round(megabytes * MB / 2 / k / 8) * 8, k)
        call = gemm.call(gemm.build(case, device), case, device)
        rows = [device.measure(call), device.measure(Call(lambda i, run=call.run: run(0)))]
        device.reset()
        size = case.n * case.k * 2
        rates = [size / row.latency * 1e-6 for row in rows]
        values = [round(row.latency * 1e3, 3) for row in rows]
        yield (
            round(size / MB, 2), call.copies, rows[0].notes["evicted"],
            rows[0].notes["bytes_between_uses"] // MB, *values,
            round(values[0] / values[1], 3), *map(round, rates),
        )  # fmt: skip


class Recording(Sampler):
    """A sampler that leaves its samples, and when it had them, to be looked at."""

    last: Recording

    def __post_init__(self) -> None:
        super().__post_init__()
        Recording.last = self
        self.times: list[float] = []

    def took(self, sample: Sample) -> None:
        super().took(sample)
        self.times.append(time.perf_counter() - self.started)


def samples(device: CudaDevice, ids: list[str]) -> Iterable[Sequence[Any]]:
    """Median, interval and seconds for the first n samples of each case, n in COUNTS."""
    work.Sampler = Recording  # type: ignore[misc]
    for case_id in ids:
        op, case = parse_id(case_id)
        runner = importlib.import_module(f"opatlas.backends.torch.{op}")
        try:
            device.measure(runner.call(runner.build(case, device), case, device))
        except (InvalidMeasurement, KernelLimit, RuntimeError) as error:
            print(case_id, error)
            continue
        finally:
            device.reset()
        values, times = Recording.last.values, Recording.last.times[Recording.last.dropped :]
        for n in COUNTS:
            if n <= len(values):
                low, high = median_interval(values[:n]) or (0.0, 0.0)
                centre = median(values[:n])
                yield case_id, n, centre, round((high - low) / centre, 5), round(times[n - 1], 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("study", choices=["ceilings", "cold", "samples"])
    parser.add_argument("out", type=Path)
    parser.add_argument("--cases", type=Path)
    parser.add_argument("--order", type=int, default=1)
    arguments = parser.parse_args()
    out: Path = arguments.out
    if arguments.study == "ceilings":
        head = ["what", "latency_ms", "rate", "sm_clock_mhz"]
        write(out, "ceilings.csv", head, ceilings(CudaDevice(Settings())))
    elif arguments.study == "cold":
        head = ["weights_mb", "copies", "evicted", "mb_between_uses", "cold_us", "hot_us", "cold_over_hot"]
        write(out, "cold.csv", [*head, "cold_gbs", "hot_gbs"], cold(CudaDevice(Settings())))
    else:
        with arguments.cases.open() as file:
            ids = [row["id"] for row in csv.DictReader(file)]
        random.Random(arguments.order).shuffle(ids)
        settings = Settings(target_ci=0.0, max_samples=COUNTS[-1], budget_s=MOST_SECONDS)
        head = ["id", "n", "median_ms", "interval_share", "seconds"]
        name = f"samples{arguments.order}.csv"
        write(out, name, head, samples(CudaDevice(settings), ids))


if __name__ == "__main__":
    main()
