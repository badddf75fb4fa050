"""The token-to-expert assignment: lawful, repeatable, the same everywhere."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opatlas.ops.moe import inputs
from opatlas.ops.moe.case import Case

DISTRIBUTIONS = ("balanced", "power_law_1.01", "power_law_1.2")


def case(tokens=64, experts=64, topk=8, ep=1, distribution="balanced", tp=1):
    return Case("bfloat16", 1024, 512, topk, experts, tp, ep, distribution, tokens)


@given(
    st.sampled_from(DISTRIBUTIONS),
    st.integers(1, 300),
    st.sampled_from([(8, 2), (60, 4), (128, 8), (16, 1), (4, 4)]),
    st.sampled_from([1, 2, 4]),
)
def test_each_token_gets_topk_different_experts_as_the_loads_say(distribution, tokens, sizes, ep):
    experts, topk = sizes
    asked = case(tokens, experts, topk, ep, distribution)
    loads, assigned = inputs.loads(asked), inputs.assignment(asked)
    assert sum(loads) == tokens * topk
    assert 0 <= min(loads) <= max(loads) <= tokens
    assert assigned.shape == (tokens, topk)
    assert all(len(set(row)) == topk for row in assigned.tolist())
    counts = np.bincount(assigned.ravel(), minlength=experts)
    assert sorted(counts) == sorted(loads)
    by_rank = counts.reshape(ep, -1).sum(axis=1)
    assert by_rank[0] == by_rank.max()


def test_balanced_is_balanced_and_power_laws_are_skewed():
    spread = {name: max(inputs.loads(case(4096, distribution=name))) for name in DISTRIBUTIONS}
    assert spread["balanced"] == 512
    assert 512 < spread["power_law_1.01"] <= spread["power_law_1.2"] <= 4096


def test_neither_tp_nor_precision_changes_the_routing():
    plain = inputs.assignment(case(distribution="power_law_1.2"))
    other = inputs.assignment(case(distribution="power_law_1.2", tp=4)._replace(dtype="fp8"))
    assert np.array_equal(plain, other)


def test_the_same_on_every_machine():
    """What this digest covers is part of every moe row's meaning; it changes only on purpose."""
    digest = hashlib.sha256()
    for distribution in DISTRIBUTIONS:
        for tokens in (1, 7, 256, 4096):
            assigned = inputs.assignment(case(tokens, 128, 8, 8, distribution))
            digest.update(assigned.astype("<i8").tobytes())
    assert digest.hexdigest() == ("35b2baaf5e37943a8f7903247e007a337cfa4f3e38c7ecbc2ad96918d6e9d753")


@pytest.mark.parametrize(
    "wrong",
    [
        {"distribution": "power_law"},
        {"distribution": "uniform_1.2"},
        {"topk": 128},
    ],
)
def test_what_cannot_be_dealt_is_an_error(wrong):
    with pytest.raises(ValueError, match=r"expected balanced or|cannot be chosen"):
        inputs.assignment(case(**wrong))


def test_what_cannot_be_split_is_an_error():
    with pytest.raises(ValueError, match="64 experts cannot be split over ep=3"):
        inputs.local_experts(case(ep=3))
    with pytest.raises(ValueError, match="512 cannot be split over tp=3"):
        inputs.local_inter(case(tp=3))
