"""Slow nodes, slow GPUs, drifting and odd shards, planted in the control cases of a good dataset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from opatlas.checks import controls, evidence
from opatlas.checks.evidence import Evidence
from opatlas.checks.finding import ADVISORY, Finding
from opatlas.checks.run import run

SHARDS = 6
# A factor for the times of a shard's controls, from its number and when they are timed.
Factor = Callable[[int, str], float]


@pytest.fixture
def good(merged_lab: Any) -> Evidence:
    return evidence.load(merged_lab.planned, merged_lab.folder)


def on_nodes(
    good: Evidence, factor: Factor, nodes: int = 3, gpus: int = 1, noise: float = 0.004, half: float = 0.002
) -> Evidence:
    """The dataset with six shards' controls on these nodes and GPUs in turn, the times made by `factor`."""
    draw = np.random.default_rng(3)
    attempt = good.record["attempts"]["a1"]
    attempts, shards = {}, []
    for number in range(SHARDS):
        place = number % (nodes * gpus)
        name, gpu = f"a{number}", f"GPU-{place}"
        facts = {**attempt["facts"], "uuid": gpu}
        attempts[name] = {**attempt, "id": name, "node": f"node{'ABC'[place // gpus]}", "facts": facts}
        timed = []
        for order, (when, case) in enumerate((w, c) for w in ("first", "last") for c in range(3)):
            latency = 10.0 ** (case - 1) * factor(number, when) * (1 + draw.uniform(-noise, noise))
            row = {"latency": latency, "latency_ci": latency * half}
            timed.append(
                {"case": f"gemm/m={case}", "when": when, "attempt": name, "order": order, "rows": [row]}
            )
        shards.append(
            {
                **good.record["shards"][0],
                "path": f"x/s{number}-f.parquet",
                "attempts": [name],
                "controls": timed,
            }
        )
    return replace(good, record={**good.record, "attempts": attempts, "shards": shards})


def found(evidence: Evidence) -> list[Finding]:
    return list(controls.check(evidence))


def test_controls_that_agree_are_no_finding(good: Evidence) -> None:
    assert found(on_nodes(good, lambda number, when: 1.0)) == []
    assert found(good) == []


def test_m6_a_slow_node_is_named_with_its_shards(good: Evidence) -> None:
    """FIELD M6: six shards on three nodes, those of node B 30 % slower."""
    (finding,) = found(on_nodes(good, lambda number, when: 1.3 if number % 3 == 1 else 1.0))
    assert finding.severity == ADVISORY
    assert finding.message == "the control cases of node nodeB are 30% slower than those of others"
    assert (finding.selector, finding.count) == ("node=nodeB", 2)
    assert [example.rpartition("/")[2] for example in finding.examples] == ["s1-f", "s4-f"]
    assert finding.advice.endswith("python -m opatlas retry torch/2.13.0/cpu --node nodeB")


def test_the_whole_check_runs_it(good: Evidence) -> None:
    slow = on_nodes(good, lambda number, when: 1.3 if number % 3 == 1 else 1.0)
    assert "controls" in {finding.check for finding in run(slow, "results/it").findings}


def test_of_two_nodes_the_slower_one_is_named(good: Evidence) -> None:
    (finding,) = found(on_nodes(good, lambda number, when: 1.1 if number % 2 else 1.0, nodes=2))
    assert finding.selector == "node=nodeB"
    assert "10% slower" in finding.message


def test_one_slow_gpu_of_a_node_is_named_by_its_uuid(good: Evidence) -> None:
    (finding,) = found(on_nodes(good, lambda number, when: 1.2 if number % 6 == 3 else 1.0, gpus=2))
    assert finding.selector == "gpu_uuid=GPU-3"
    assert finding.advice.endswith("--gpu GPU-3")


@pytest.mark.parametrize(("factor", "half", "names"), [(1.025, 0.001, 0), (1.05, 0.001, 1), (1.05, 0.03, 0)])
def test_only_what_is_beyond_tolerance_and_noise_is_named(
    good: Evidence, factor: float, half: float, names: int
) -> None:
    slow = on_nodes(good, lambda number, when: factor if number % 3 == 1 else 1.0, noise=0, half=half)
    assert len(found(slow)) == names


def test_a_shard_that_drifts_is_named(good: Evidence) -> None:
    def factor(number: int, when: str) -> float:
        return 1.08 if number == 2 and when == "last" else 1.0

    finding = next(f for f in found(on_nodes(good, factor)) if "at the end" in f.message)
    assert finding.count == 1
    assert "s2-f: 8% slower on nodeC" in finding.examples[0]


def test_a_shard_that_differs_from_the_others_of_its_gpu_is_named(good: Evidence) -> None:
    (finding,) = found(on_nodes(good, lambda number, when: 1.5 if number == 4 else 1.0, nodes=1))
    assert "other shards of the same GPU" in finding.message
    assert "s4-f: 50% slower" in finding.examples[0]


def test_controls_that_failed_or_lack_their_attempt_say_nothing(good: Evidence) -> None:
    whole = on_nodes(good, lambda number, when: 1.3 if number % 3 == 1 else 1.0)
    shards = [dict(shard) for shard in whole.record["shards"]]
    for shard in shards:
        shard["controls"] = [
            {**{k: v for k, v in c.items() if k != "rows"}, "failure": {"class": "hang"}}
            for c in shard["controls"]
        ]
    shards[0]["controls"] = [{**whole.record["shards"][1]["controls"][0], "attempt": "gone"}]
    assert found(replace(whole, record={**whole.record, "shards": shards})) == []


def test_controls_that_several_shards_hand_on_count_once(good: Evidence) -> None:
    whole = on_nodes(good, lambda number, when: 1.3 if number % 3 == 1 else 1.0)
    again = {**whole.record, "shards": [*whole.record["shards"], *whole.record["shards"]]}
    (finding,) = found(replace(whole, record=again))
    assert finding.count == 2
