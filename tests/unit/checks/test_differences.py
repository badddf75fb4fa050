"""Latencies that are differences of two timings (FIELD M13)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from opatlas.catalogue import load as catalogue
from opatlas.checks import evidence
from opatlas.checks.run import run
from opatlas.config import datasets
from opatlas.planning.dataset import PlannedDataset
from opatlas.planning.plan import make_plan
from opatlas.planning.shards import cut
from opatlas.staleness.fingerprint import context

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def scales(lab: Any) -> Any:
    """The plan of compute_scale for TensorRT-LLM, a hundred cases, as if it had a runner."""
    config = datasets.load(REPOSITORY, {"subset": "few", "limit": 100, "audit_share": 0})
    dataset = config.dataset("trtllm/1.3.0rc20/sm90@few")
    cases = catalogue.load(REPOSITORY)
    declared = replace(cases, precisions={"trtllm": {"compute_scale": ({"dtype": "fp8"},)}})
    plan = make_plan(config, declared, dataset, {"compute_scale": True})
    (op,) = plan.ops
    measured = context(dataset, "compute_scale", op.runtime, config.settings.measure)
    lab.planned = PlannedDataset(config, plan, tuple(cut(dataset, op, measured, 1e9, {})))
    return lab


def findings(lab: Any, *rows: tuple[float, dict[str, float]]) -> list[tuple[str, str, int]]:
    """What is found where the cases have these latencies and bring these values, in turn."""
    digest = lab.planned.plan.ops[0].runtime.digest
    place = {"timing_method": "cuda_graph", "device": "NVIDIA H200", "image_digest": digest}

    def outcomes(measured: list[dict[str, Any]]) -> Any:
        kinds = [rows[number % len(rows)] for number in range(len(measured))]
        return [
            {**row, **place, "latency": latency, "values": json.dumps(values) if values else None}
            for row, (latency, values) in zip(measured, kinds, strict=True)
        ], []

    attempt = {
        "id": "a1",
        "node": "node1",
        "started": "",
        "versions": {"framework": "1.3.0rc20"},
        "facts": {},
    }
    lab.write(change=outcomes, attempts=[attempt])
    lab.merge()
    report = run(evidence.load(lab.planned, lab.folder), "it")
    return [(finding.check, finding.severity, finding.count) for finding in report.findings]


def operands(dynamic: float, static: float) -> dict[str, float]:
    return {"latency_dynamic": dynamic, "latency_static": static}


def test_zeros_without_their_timings_fail_and_with_them_pass(scales: Any) -> None:
    zero, rest = (0.0, {}), (0.005, {})
    assert findings(scales, *[zero] * 19, rest) == [("differences", "blocking", 95)]
    assert findings(scales, *[(0.0, operands(0.004, 0.005))] * 19, rest) == []


def test_a_row_that_was_timed_as_one_needs_no_second_timing(scales: Any) -> None:
    assert findings(scales, (0.005, {})) == []


def test_the_latency_is_the_difference_that_stands_beside_it(scales: Any) -> None:
    assert findings(scales, (0.002, operands(0.007, 0.005))) == []
    assert findings(scales, (0.0, operands(0.007, 0.005))) == [("differences", "blocking", 100)]
