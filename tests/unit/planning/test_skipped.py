"""What is drawn of the cases that skip entries keep out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from opatlas.planning import rules, skipped
from opatlas.planning.dataset import plan_dataset
from opatlas.planning.plan import Plan, make_plan
from opatlas.planning.rules import PLANNED

SGLANG, TRTLLM, TORCH = "sglang/0.5.14/sm90", "trtllm/1.3.0rc20/sm90", "torch/2.13.0/cpu"
ENTRY = """
- backend: torch
  op: gemm
  where: {m: {min: %d}}
  why: fails_whole
  reason: too tall
"""


def plan_with_runners(desk, name) -> Plan:
    dataset = desk.config.dataset(name)
    runners = dict.fromkeys(desk.catalogue.ops(dataset.backend), True)
    return make_plan(desk.config, desk.catalogue, dataset, runners)


@pytest.mark.parametrize("name", [SGLANG, TRTLLM])
def test_a_few_cases_of_each_entry_that_no_other_rule_speaks_of(desk, name):
    plan = plan_with_runners(desk, name)
    sampled = skipped.sample(desk.catalogue, plan, seed=1)
    assert sampled.cases > 20
    labels = {skip.match.label for skip in desk.catalogue.skips}
    for op, drawn in zip(plan.ops, sampled.ops, strict=True):
        members = {entry.rule: set(entry.members) for entry in op.left_out if entry.rule in labels}
        for case, owners in drawn.owners.items():
            assert case in members[owners[0]]
            assert getattr(case, "dispatch", "") != "?"
        for rule in members:
            assert sum(owners == (rule,) for owners in drawn.owners.values()) <= skipped.CASES
            others = [r for r in rules.of_cases(desk.catalogue, plan.dataset, op.op) if r.name != rule]
            rows = drawn.rows.take([owners == (rule,) for owners in map(drawn.owners.get, drawn.cases)])
            taken, _ = rules.apply(others, rows, len(rows))
            assert (taken == PLANNED).all()
        assert drawn.cases == sorted(drawn.cases)


def test_the_draw_goes_by_the_seed_alone(desk):
    plan = plan_with_runners(desk, TRTLLM)
    one, same, other = (skipped.sample(desk.catalogue, plan, seed).case_plan_hash for seed in (1, 1, 2))
    assert one == same != other


def test_ops_without_a_runner_have_no_samples(desk):
    plan = desk.plan(TRTLLM)
    assert not any(op.runner for op in plan.ops)
    assert skipped.sample(desk.catalogue, plan, seed=1).cases == 0


def test_their_shards_are_never_those_of_the_dataset(copy):
    changed = copy.add("cases/skips.yaml", ENTRY % 256)
    sampled = changed.config.dataset(f"{TORCH}.skips")
    assert (sampled.name, sampled.base) == (f"{TORCH}.skips", TORCH)
    planned = plan_dataset(changed.root, changed.config, changed.catalogue, sampled)
    (shard,) = [shard for shard in planned.shards if shard.op == "gemm"]
    assert (shard.name, len(shard.ids)) == ("k", skipped.CASES)
    whole = plan_dataset(changed.root, changed.config, changed.catalogue, replace(sampled, skipped=False))
    keys = {key for shard in whole.all_shards for key in shard.keys}
    assert keys.isdisjoint(shard.keys)
    assert not planned.repeats


def test_limits_of_the_platform_are_no_matter_of_an_entry(copy):
    """Rows of more than 256 are not planned on a CPU, whatever the skip list says."""
    changed = copy.add("cases/skips.yaml", ENTRY % 257)
    sampled = plan_dataset(
        changed.root, changed.config, changed.catalogue, changed.config.dataset(f"{TORCH}.skips")
    )
    assert "gemm" not in {shard.op for shard in sampled.shards}
