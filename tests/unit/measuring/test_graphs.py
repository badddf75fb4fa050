"""What a captured graph must hold."""

from __future__ import annotations

import pytest
from opatlas.measuring.errors import InvalidMeasurement
from opatlas.measuring.graphs import demangle, kernels_of_a_call


def test_each_call_holds_the_same_kernels():
    assert kernels_of_a_call([(("gemm", "reduce") * 3, 3)]) == ("gemm", "reduce")
    assert kernels_of_a_call([(("gemm",) * 4, 4), (("gemm",) * 3, 3)]) == ("gemm",)


@pytest.mark.parametrize(
    "graphs",
    [
        [((), 3)],
        [(("gemm",), 4)],
        [(("gemm", "gemm", "reduce"), 2)],
        [(("gemm", "reduce") * 2, 4)],
        [(("gemm",) * 2, 2), (("other",) * 2, 2)],
    ],
    ids=["nothing", "only the first call", "one kernel missing", "half the calls", "graphs differ"],
)
def test_kernels_that_are_missing_are_found(graphs):
    with pytest.raises(InvalidMeasurement, match="no_write"):
        kernels_of_a_call(graphs)


def test_names_are_readable():
    assert demangle("_ZN2at6native6vectorIfEEvi") == "void at::native::vector<float>(int)"
    assert demangle("nvjet_sm90_tst_64x8") == "nvjet_sm90_tst_64x8"
