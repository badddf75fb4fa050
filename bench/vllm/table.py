"""One CSV of the cases that smoke.py measured, beside a public figure of the same key where there is one.

    python bench/vllm/table.py OUT.csv smoke.json... [--public FOLDER]

FOLDER holds the public tables of the same GPU, framework and version (`gemm_perf.parquet`, ...).
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "workflow"))

from opatlas.ops.ids import parse_id  # noqa: E402

HEAD = [
    "id", "kernel_source", "timing_method", "latency_1_us", "latency_2_us", "samples_2", "kernels_per_call",
    "build_ms", "call_ms", "measure_ms", "public_us", "failure",
]  # fmt: skip

ATTENTION = {
    "heads": "num_heads", "kv_heads": "num_key_value_heads", "head_dim": "head_dim", "window": "window_size",
    "batch": "batch_size", "dtype": "attn_dtype", "kv_dtype": "kv_cache_dtype",
}  # fmt: skip
QUANTIZE = {"m": "m", "k": "k", "dtype": "quant_dtype"}
PUBLIC: dict[str, tuple[str, dict[str, str]]] = {
    "gemm": ("gemm_perf", {"m": "m", "n": "n", "k": "k", "dtype": "gemm_dtype"}),
    "compute_scale": ("computescale_perf", QUANTIZE),
    "scale_matrix": ("scale_matrix_perf", QUANTIZE),
    "attention_context": ("context_attention_perf", {**ATTENTION, "isl": "isl"}),
    "attention_generation": ("generation_attention_perf", {**ATTENTION, "kv_len": "step"}),
    "encoder_attention": (
        "encoder_attention_perf",
        {"heads": "num_heads", "head_dim": "head_dim", "batch": "batch_size", "isl": "isl"},
    ),
}
"""Of each op: its public table, and how that calls the fields of a case."""


def public_figure(folder: Path, case_id: str) -> str:
    op, case = parse_id(case_id)
    fields = case._asdict()
    if fields.get("variant"):
        return ""
    table, names = PUBLIC[op]
    wanted = [(column, "==", fields[name]) for name, column in names.items()]
    if op == "attention_generation":  # a step there is the tokens in the cache, less the new one
        wanted = [(c, o, v - 1 if c == "step" else v) for c, o, v in wanted]
    found = pq.read_table(folder / f"{table}.parquet", filters=wanted).to_pylist()
    return f"{found[0]['latency'] * 1e3:.4g}" if len(found) == 1 else ""


def line(case_id: str, rows: list[dict[str, Any]], public: Path | None) -> dict[str, Any]:
    first, again = rows
    if "failure" in again:
        return {"id": case_id, "failure": again["failure"].partition("\n")[0].strip()}
    build, call, measured = again["host_ms"]
    return {
        "id": case_id,
        "kernel_source": again["source"],
        "timing_method": again["method"],
        "latency_1_us": first["latency_us"],
        "latency_2_us": again["latency_us"],
        "samples_2": again["samples"],
        "kernels_per_call": len(again["kernels"]),
        "build_ms": build,
        "call_ms": call,
        "measure_ms": measured,
        "public_us": public_figure(public, case_id) if public else "",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("smokes", nargs="+", type=Path)
    parser.add_argument("--public", type=Path)
    arguments = parser.parse_args()
    with arguments.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, HEAD)
        writer.writeheader()
        for smoke in arguments.smokes:
            for case_id, rows in json.loads(smoke.read_text())["cases"].items():
                writer.writerow(line(case_id, rows, arguments.public))


if __name__ == "__main__":
    main()
