"""Shards are cut by content: a case that comes or goes touches the shard it falls into."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opatlas.config import datasets
from opatlas.ops.gemm.case import Case
from opatlas.ops.spec import load_op
from opatlas.planning import shards
from opatlas.planning.shards import Shard, cut
from opatlas.staleness.fingerprint import Context

ROOT = Path(__file__).parents[3]
CONFIG = datasets.load(ROOT)
DATASET = CONFIG.dataset("torch/2.11.0/sm90")
CONTEXT = Context({"code": {}, "op": "gemm"})
OP = load_op("gemm")


def cases(count: int) -> list[Case]:
    """Ten token counts for each of count / 10 builds."""
    return [Case("bfloat16", m, 64 * n, 128) for n in range(1, count // 10 + 1) for m in range(1, 11)]


def planned(wanted: list[Case]) -> Any:
    """As much of an OpPlan as cutting looks at."""
    ordered = sorted(wanted)
    columns = {
        field: np.array(values, dtype=object if field == "dtype" else None)
        for field, values in zip(OP.fields, zip(*ordered, strict=True), strict=True)
    }
    widths = np.array([case.n for case in ordered])
    order = np.argsort(widths, kind="stable")
    starts = np.flatnonzero(np.diff(widths[order], prepend=-1))
    return SimpleNamespace(
        op=OP,
        cases=ordered,
        ids=[shards_id(case) for case in ordered],
        columns=columns,
        work=OP.work(columns),
        build_order=(order, starts),
    )


def shards_id(case: Case) -> str:
    return f"gemm/dtype={case.dtype}/m={case.m}/n={case.n}/k={case.k}"


def cut_into(wanted: list[Case], seconds: float, each_s: float = 0.5) -> list[Shard]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "GPU_OVERHEAD_S", each_s)
        patch.setattr(shards, "GPU_CALLS", 0)
        return cut(DATASET, planned(wanted), CONTEXT, seconds, {})


def test_every_case_is_in_exactly_one_shard_and_builds_stay_together() -> None:
    wanted = cases(2000)
    made = cut_into(wanted, 60)
    ids = [case_id for shard in made for case_id in shard.ids]
    assert sorted(ids) == sorted(map(shards_id, wanted))
    for width in {case.n for case in wanted}:
        assert sum(any(f"/n={width}/" in case_id for case_id in shard.ids) for shard in made) == 1


def test_shards_are_near_the_target() -> None:
    made = cut_into(cases(20_000), 600)
    assert all(sum(shard.costs_s) <= 600 for shard in made)
    assert len(made) <= 40


def test_a_hundred_thousand_cases_are_at_most_forty_jobs() -> None:
    """Half a second each, half an hour a shard."""
    assert len(cut_into(cases(100_000), 30 * 60)) <= 40


def test_one_case_more_makes_one_shard_stale() -> None:
    wanted = cases(10_000)
    before = {shard.key for shard in cut_into(wanted, 1200)}
    after = {shard.key for shard in cut_into([*wanted, Case("bfloat16", 11, 64, 128)], 1200)}
    assert len(before) > 4
    assert len(after - before) == 1


def test_a_shard_that_grows_past_the_target_splits_in_two_and_no_other_changes() -> None:
    wanted = cases(1000)
    (grown,) = cut_into(wanted, 500)
    more = [*wanted, Case("bfloat16", 11, 64, 128)]
    assert [shard.name for shard in cut_into(more, 500)] == ["s0", "s1"]
    assert grown.name == "s"


def test_the_order_of_the_cases_does_not_count() -> None:
    wanted = cases(1000)
    assert [s.key for s in cut_into(wanted, 60)] == [s.key for s in cut_into(wanted[::-1], 60)]


@given(st.sets(st.integers(0, 99), max_size=40), st.integers(1, 60))
def test_changes_stay_in_the_leaves_they_fall_into(removed: set[int], seconds: int) -> None:
    """Shards none of whose cases came or went keep name and fingerprint, unless a neighbour merged in."""
    wanted = cases(1000)
    left = [case for index, case in enumerate(wanted) if index // 10 not in removed]
    before, after = cut_into(wanted, seconds), cut_into(left, seconds)
    gone = {shards_id(case) for case in wanted} - {shards_id(case) for case in left}
    untouched = {shard.key for shard in before if not gone & set(shard.ids)}
    kept = {shard.key for shard in after}
    names = {shard.name for shard in after}
    for shard in before:
        if shard.key in untouched - kept:
            assert any(shard.name.startswith(name) and name != shard.name for name in names)


def test_a_build_longer_than_the_target_is_one_shard() -> None:
    assert len(cut_into(cases(10), 1)) == 1


def test_a_retried_case_changes_its_shard_alone() -> None:
    made = cut_into(cases(1000), 60)
    again = replace(made[0], generations={made[0].ids[0]: 1})
    assert again.fingerprint != made[0].fingerprint
    assert again.keys[0].generation == 1


def test_another_context_is_another_fingerprint() -> None:
    made = cut_into(cases(10), 60)[0]
    other = replace(made, context=Context({"code": {"m": "1"}, "op": "gemm"}))
    assert other.fingerprint != made.fingerprint
    assert other.name == made.name
