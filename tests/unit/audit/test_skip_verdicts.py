"""Verdicts on skip entries, by why they leave cases out and what became of some of these."""

from __future__ import annotations

import pytest
from opatlas.audit.skips import CANNOT_SAY, NO_LONGER, STILL, weigh
from opatlas.catalogue.skips import REASONS


@pytest.mark.parametrize(
    ("why", "outcomes", "verdict"),
    [
        ("fails_whole", ["row", "unsupported"], NO_LONGER),
        ("fails_whole", ["unsupported", "out_of_memory"], STILL),
        ("fails_whole", ["out_of_memory", "invalid_measurement"], CANNOT_SAY),
        ("kills", ["hang", "row"], STILL),
        ("kills", ["worker_died"], STILL),
        ("kills", ["unsupported", "row"], NO_LONGER),
        ("mismeasured", ["row", "row"], CANNOT_SAY),
        ("unserved", ["unsupported"], CANNOT_SAY),
    ],
)
def test_what_outcomes_say(why, outcomes, verdict):
    assert weigh(why, outcomes)[0] == verdict


@pytest.mark.parametrize("why", REASONS)
def test_every_verdict_says_what_it_rests_on(why):
    assert all(weigh(why, [outcome])[1] for outcome in ("row", "unsupported", "hang", "out_of_memory"))
