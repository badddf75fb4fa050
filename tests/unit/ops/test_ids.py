"""Case ids and the way back."""

from __future__ import annotations

import pytest
from opatlas.ops.ids import format_id, parse_id
from opatlas.ops.module_case import ContextCase
from opatlas.ops.moe.case import Case as Moe

MOE = Moe("nvfp4", 2048, 768, 8, 128, 1, 4, "balanced", 64)


def test_a_default_is_left_out():
    plain = (
        "moe/dtype=nvfp4/hidden=2048/inter=768/topk=8/experts=128/tp=1/ep=4/distribution=balanced/tokens=64"
    )
    assert format_id("moe", MOE) == plain
    special = MOE._replace(activation="gelu", dispatch="min_latency")
    assert format_id("moe", special) == f"{plain}/activation=gelu/dispatch=min_latency"
    for case in (MOE, special):
        assert parse_id(format_id("moe", case)) == ("moe", case)


def test_a_value_may_hold_slashes():
    case = ContextCase(
        "zai-org/GLM-5.2", "GlmMoeDsaForCausalLM", "bfloat16", "bfloat16", "fp8", 6144, 32, 2, 1, 512, 0
    )
    assert parse_id(format_id("dsa_context_module", case)) == ("dsa_context_module", case)


@pytest.mark.parametrize(
    ("case_id", "message"),
    [
        ("gem/m=1", "no op named 'gem'"),
        ("gemm/dtype=fp8/m=1/n=2", "k is missing"),
        ("gemm/m=1/dtype=fp8/n=2/k=3", "in this order"),
        ("gemm/dtype=fp8/m=1/n=2/k=3/l=4", "has the fields dtype, m, n, k"),
        ("gemm/dtype=fp8/m=01/n=2/k=3", "is not written as an id is"),
        ("gemm/dtype=fp8/m=one/n=2/k=3", "one"),
    ],
)
def test_what_is_no_id_is_refused(case_id, message):
    with pytest.raises(ValueError, match=message):
        parse_id(case_id)
