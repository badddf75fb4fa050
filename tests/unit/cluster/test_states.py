"""No state of SLURM is waited for in vain, and none stands for success by itself."""

from __future__ import annotations

import pytest
from opatlas.cluster.states import HINTS, INNOCENT_STATES, NODE_STATES, PHASES, Job, Phase, first_word


@pytest.mark.parametrize(
    ("said", "state", "phase"),
    [
        ("CANCELLED by 1000", "CANCELLED", Phase.ENDED),
        ("CANCELLED+", "CANCELLED", Phase.ENDED),
        ("PREEMPTED", "PREEMPTED", Phase.ENDED),
        ("NODE_FAIL", "NODE_FAIL", Phase.ENDED),
        ("COMPLETED", "COMPLETED", Phase.ENDED),
        ("COMPLETING", "COMPLETING", Phase.ACTIVE),
        ("REQUEUED", "REQUEUED", Phase.ACTIVE),
        ("SPECIAL_EXIT", "SPECIAL_EXIT", Phase.HELD),
        ("UNKNOWN", "UNKNOWN", Phase.HELD),
        ("", "UNKNOWN", Phase.HELD),
        ("SOMETHING_NEW", "SOMETHING_NEW", Phase.HELD),
    ],
)
def test_the_first_word_counts(said: str, state: str, phase: Phase) -> None:
    job = Job(first_word(said))
    assert (job.state, job.phase) == (state, phase)


def test_states_that_are_spoken_of_exist() -> None:
    assert {*HINTS, *NODE_STATES, *INNOCENT_STATES} <= PHASES.keys()


def test_a_pending_job_that_can_never_start_is_told_from_one_that_waits() -> None:
    assert Job("PENDING", "PartitionTimeLimit").is_stuck
    assert Job("PENDING", "ReqNodeNotAvail,_UnavailableNodes:n1").is_stuck
    assert not Job("PENDING", "Resources").is_stuck
    assert not Job("RUNNING", "None").is_stuck
