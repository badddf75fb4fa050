"""A case in which another kernel ran than the one asked for is void (FIELD M8)."""

from __future__ import annotations

import pytest
from opatlas.measuring.call import Call
from opatlas.measuring.errors import InvalidMeasurement


def test_the_kernel_that_was_asked_for():
    Call(lambda i: None, kernel="^flashmla").require_kernel(("prepare", "flashmla_sm90<64>"))
    Call(lambda i: None).require_kernel(())


@pytest.mark.parametrize("ran", [(), ("fmha_v2",), ("no_flashmla",)])
def test_another_kernel(ran):
    with pytest.raises(InvalidMeasurement, match="no kernel that ran matches '\\^flashmla'") as raised:
        Call(lambda i: None, kernel="^flashmla").require_kernel(ran)
    assert raised.value.reason == "wrong_kernel"
