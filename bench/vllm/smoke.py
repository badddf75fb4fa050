"""One case of each kind through vLLM's runners: a row or a failure, the kernels, and where the time went.

    python bench/vllm/smoke.py OUT.json [CASE ...]

Each case is built and measured twice: the first time compiles and loads, the second shows the steady
state. Exit status 1 if a case failed.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import traceback
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

BEGAN = time.perf_counter()
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "workflow"))

from opatlas.backends.vllm import runtime  # noqa: E402
from opatlas.measuring.errors import InvalidMeasurement  # noqa: E402
from opatlas.measuring.settings import Settings  # noqa: E402
from opatlas.ops.ids import parse_id  # noqa: E402

SHAPE = "dtype=bfloat16/kv_dtype={}/heads={}/kv_heads={}/head_dim={}/window={}"
PREFILL = f"attention_context/{SHAPE}/batch=4/isl={{}}"
DECODE = f"attention_generation/{SHAPE}/batch={{}}/kv_len={{}}"

CASES = [
    "gemm/dtype=bfloat16/m=16/n=4096/k=5120",
    "gemm/dtype=fp8/m=16/n=4096/k=5120",
    "gemm/dtype=fp8/m=2048/n=4096/k=5120",
    "gemm/dtype=fp8/m=16/n=24/k=5120",
    "compute_scale/dtype=fp8/m=16/k=5120",
    "scale_matrix/dtype=fp8/m=16/k=5120",
    "encoder_attention/dtype=bfloat16/heads=16/head_dim=72/batch=4/isl=1024",
    "encoder_attention/dtype=bfloat16/heads=16/head_dim=80/batch=1/isl=4096",
    PREFILL.format("bfloat16", 32, 8, 128, 0, 1024),
    PREFILL.format("fp8", 32, 8, 128, 0, 1024),
    PREFILL.format("bfloat16", 8, 1, 64, 128, 1024) + "/variant=sinks",
    PREFILL.format("bfloat16", 16, 16, 256, 1024, 2048),
    PREFILL.format("bfloat16", 40, 8, 128, 8192, 16384) + "/variant=chunked",
    PREFILL.format("bfloat16", 64, 4, 192, 0, 1024) + "/variant=v128",
    PREFILL.format("bfloat16", 64, 8, 192, 128, 1024) + "/variant=v128+sinks",
    PREFILL.format("bfloat16", 32, 4, 512, 0, 1024),
    DECODE.format("bfloat16", 32, 8, 128, 0, 16, 2048),
    DECODE.format("fp8", 32, 8, 128, 0, 16, 2048),
    DECODE.format("bfloat16", 64, 8, 128, 0, 1, 131072),
    DECODE.format("bfloat16", 8, 1, 64, 128, 64, 4096) + "/variant=sinks",
    DECODE.format("fp8", 8, 1, 64, 0, 64, 4096) + "/variant=sinks",
    DECODE.format("bfloat16", 16, 16, 256, 1024, 16, 8192),
    DECODE.format("bfloat16", 8, 8, 128, 0, 2048, 128),
    DECODE.format("bfloat16", 40, 8, 128, 8192, 4, 16384) + "/variant=chunked",
    DECODE.format("bfloat16", 64, 4, 192, 0, 16, 1024) + "/variant=v128",
    "gemm/dtype=fp8_block/m=16/n=24/k=5120",
    "gemm/dtype=fp8_block/m=16/n=4096/k=5120",
    "gemm/dtype=fp8_block/m=256/n=4096/k=5120",
]


def once(device: Any, case_id: str) -> dict[str, Any]:
    op, case = parse_id(case_id)
    runner = importlib.import_module(f"opatlas.backends.vllm.{op}")
    times = [time.perf_counter()]
    try:
        built = runner.build(case, device)
        times.append(time.perf_counter())
        call = runner.call(built, case, device)
        times.append(time.perf_counter())
        measured = device.measure(replace(call, kernel=""))
        times.append(time.perf_counter())
        row = {
            "latency_us": round(measured.latency * 1e3, 3),
            "method": measured.timing_method,
            "source": runner.kernel_source(built, case),
            "kernels": [kernel[:160] for kernel in measured.kernels],
            "host_ms": [round((end - begin) * 1e3, 1) for begin, end in pairwise(times)],
            "samples": measured.samples,
            "stop": measured.stop_reason,
            "not_captured": measured.notes.get("not_captured"),
            "copies": call.copies,
            "sets": call.sets,
        }
        try:
            call.require_kernel(measured.kernels)
        except InvalidMeasurement as error:
            row["wrong_kernel"] = str(error)
    except Exception as error:
        return {
            "failure": f"{type(error).__name__}: {error}"[:600],
            "traceback": traceback.format_exc()[-3000:],
        }
    finally:
        built = call = None
        device.reset()
    return row


def main() -> None:
    out = Path(sys.argv[1])
    device = runtime.device(Settings(), {"sm": 90})
    device.synchronize()
    result: dict[str, Any] = {"versions": runtime.versions(), "facts": device.facts(), "cases": {}}
    result["start_s"] = round(time.perf_counter() - BEGAN, 2)
    print(f"start-up {result['start_s']} s", result["versions"], flush=True)
    failed = 0
    for case_id in sys.argv[2:] or CASES:
        rows = [once(device, case_id), once(device, case_id)]
        failed += any("failure" in row for row in rows)
        result["cases"][case_id] = rows
        shown = [row.get("failure") or [row["latency_us"], row["host_ms"], row["method"]] for row in rows]
        print(f"{time.perf_counter() - BEGAN:6.1f} {case_id}", *shown, sep="\n         ", flush=True)
        out.write_text(json.dumps(result, indent=1))
    sys.stdout.flush()
    os._exit(failed > 0)  # as a worker ends: nothing that a framework leaves behind is waited for


if __name__ == "__main__":
    main()
