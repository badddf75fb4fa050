"""How many cases, or builds, every op has on every backend and SM."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

with (Path(__file__).parent / "counts.csv").open() as file:
    COUNTS = list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("backend", "sm"), sorted({(row["backend"], int(row["sm"])) for row in COUNTS}), ids=str
)
def test_counts(desk, backend, sm):
    planned = {
        (op.op.name, unit): count
        for op in desk.everywhere(backend, f"sm{sm}")
        for unit, count in (("cases", len(op.rows)), ("builds", op.builds))
    }
    wanted = {
        (row["op"], row["unit"]): int(row["count"])
        for row in COUNTS
        if row["backend"] == backend and row["sm"] == str(sm)
    }
    assert {key: planned.get(key, 0) for key in wanted} == wanted


def test_the_vision_encoder_of_kimi(desk):
    cases = desk.op("trtllm/1.3.0rc20/sm90", "encoder_attention").cases
    assert sum(case.head_dim == 72 and case.heads in (16, 8, 4, 2, 1) for case in cases) == 1100


def test_a_layer_of_gdn_gives_a_row_for_each_of_its_two_kernels(desk):
    op = desk.op("vllm/0.24.0/sm90", "gdn")
    assert (op.op.rows, len(op.rows)) == (2, 42 * (7 * 16 + 11))
