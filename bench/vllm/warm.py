"""Compiles the kernels of block-scaled fp8 products, one for each shape, with many processes at once.

    python bench/vllm/warm.py CASES.csv CACHES --jobs 14

CACHES is then what OPATLAS_WARM_CACHES names. Nothing is timed; run it before, not while, measuring.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "workflow"))

from opatlas.harness.environment import FOLDERS  # noqa: E402

KIND = "gemm/dtype=fp8_block/"


class Unmeasured:
    """A device on which calls only run."""

    def __init__(self) -> None:
        import torch

        self.torch_device = torch.device("cuda", 0)

    def copies(self, bytes_read: int, bytes_held: int = 0) -> int:
        return 1

    def sets(self, bytes_per_call: int) -> int:
        return 1

    def free_bytes(self) -> int:
        return 1 << 50

    def normal(self, shape: Any, dtype: Any, scale: float = 1.0) -> Any:
        import torch

        return torch.zeros(tuple(shape), dtype=dtype, device=self.torch_device)


def compile_share(ids: list[str]) -> None:
    import torch
    from opatlas.backends.vllm import gemm
    from opatlas.ops.ids import parse_id

    torch.set_grad_enabled(False)
    device: Any = Unmeasured()
    ends: Counter[str] = Counter()
    for case_id in ids:
        _, case = parse_id(case_id)
        try:
            gemm.call(gemm.build(case, device), case, device).run(0)
            torch.cuda.synchronize()
            ends["compiled"] += 1
        except Exception as error:
            ends[f"{type(error).__name__} {error}"[:80]] += 1
        torch.cuda.empty_cache()
    print(dict(ends), flush=True)
    os._exit(0)  # as a worker ends: nothing that a framework leaves behind is waited for


def ended(job: subprocess.Popen[bytes], deadline: float) -> int:
    """The exit code of a job, which is killed at the deadline: a cache may be incomplete."""
    try:
        return job.wait(max(0.0, deadline - time.perf_counter()))
    except subprocess.TimeoutExpired:
        job.kill()
        return job.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cases", type=Path)
    parser.add_argument("caches", type=Path)
    parser.add_argument("--jobs", type=int, default=14)
    parser.add_argument("--seconds", type=float, default=180, help="end what is not compiled by then")
    parser.add_argument("--share", type=int, help="compile only the share of this job")
    arguments = parser.parse_args()
    with arguments.cases.open() as file:
        ids = sorted(row["id"] for row in csv.DictReader(file) if row["id"].startswith(KIND))
    if arguments.share is not None:
        return compile_share(ids[arguments.share :: arguments.jobs])
    begun = time.perf_counter()
    environment = dict(os.environ)
    for name, below in FOLDERS.items():
        if below.startswith("cache/"):
            environment[name] = str(arguments.caches.resolve() / below.removeprefix("cache/"))
            Path(environment[name]).mkdir(parents=True, exist_ok=True)
    command = [sys.executable, __file__, str(arguments.cases), str(arguments.caches)]
    jobs = [
        subprocess.Popen([*command, "--jobs", str(arguments.jobs), "--share", str(share)], env=environment)
        for share in range(arguments.jobs)
    ]
    codes = [ended(job, begun + arguments.seconds) for job in jobs]
    print(f"{len(ids)} cases in {time.perf_counter() - begun:.0f} s, exit codes {codes}")
    sys.exit(any(codes))


if __name__ == "__main__":
    main()
