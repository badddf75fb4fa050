"""A well-behaved shard from ticket to receipt, and what ends it early."""

from __future__ import annotations

import json


def test_every_case_becomes_a_row_and_the_receipt_says_so(shard):
    shard.plan(5)
    shard.run()
    assert shard.classes() == dict.fromkeys(range(1, 6), "row")
    receipt = json.loads(shard.receipt.read_text())
    assert (receipt["cases"], receipt["rows"], receipt["failures"]) == (5, 5, 0)
    assert [row["order"] for row in shard.read().outcomes.values()] == [1, 2, 3, 4, 5]
