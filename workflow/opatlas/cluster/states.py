"""The words that SLURM has for the state of a job, and what each means to a run that waits for it."""

from __future__ import annotations

import enum
from typing import NamedTuple


class Phase(enum.Enum):
    """ACTIVE goes on by itself, HELD never does, ENDED is over; what became of it, its receipt says."""

    ACTIVE = enum.auto()
    HELD = enum.auto()
    ENDED = enum.auto()


ACTIVE = (
    "PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "COMPLETING", "RESIZING", "SIGNALING", "STAGE_OUT",
    "STOPPED", "REQUEUED", "REQUEUE_FED", "POWER_UP_NODE", "UPDATE_DB",
)  # fmt: skip
HELD = ("REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT")
ENDED = (
    "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "OUT_OF_MEMORY",
    "DEADLINE", "LAUNCH_FAILED", "RECONFIG_FAIL", "REVOKED", "EXPIRED",
)  # fmt: skip
PHASES = {
    **dict.fromkeys(ACTIVE, Phase.ACTIVE),
    **dict.fromkeys(HELD, Phase.HELD),
    **dict.fromkeys(ENDED, Phase.ENDED),
}

# States in which the node is to blame: no job goes there again in this run.
NODE_STATES = ("NODE_FAIL", "BOOT_FAIL", "LAUNCH_FAILED")
# States that say nothing about the node.
INNOCENT_STATES = ("TIMEOUT", "PREEMPTED", "CANCELLED", "DEADLINE", "REVOKED")
# Reasons of a pending job that somebody has to mend before it can start.
STUCK_REASONS = (
    "AccountNotAllowed", "AssocMaxWallDurationPerJobLimit", "BadConstraints", "InvalidAccount", "InvalidQOS",
    "JobHeldAdmin", "JobHeldUser", "PartitionDown", "PartitionInactive", "PartitionNodeLimit",
    "PartitionTimeLimit", "QOSMaxWallDurationPerJobLimit", "QOSNotAllowed", "ReqNodeNotAvail",
    "launch_failed_requeued_held",
)  # fmt: skip

HINTS = {
    "TIMEOUT": "its time limit is over; the next attempt gets a longer one",
    "OUT_OF_MEMORY": "it needs more than slurm.mem_mb of its platform in config/platforms.yaml",
    "PREEMPTED": "another job took its place",
    "CANCELLED": "somebody cancelled it",
    "NODE_FAIL": "its node failed, and gets no further job of this run",
    "BOOT_FAIL": "its node did not boot, and gets no further job of this run",
}


class Job(NamedTuple):
    """What SLURM says of a job: the first word of its state, why it waits, and on which node it ran."""

    state: str
    reason: str = ""
    node: str = ""

    @property
    def phase(self) -> Phase:
        """A word that no SLURM known here says is taken for HELD: the job is ended before it is repeated."""
        return PHASES.get(self.state, Phase.HELD)

    @property
    def is_stuck(self) -> bool:
        return self.state == "PENDING" and self.reason.partition(",")[0] in STUCK_REASONS


def first_word(state: str) -> str:
    """`CANCELLED by 1000` and `COMPLETED+` are CANCELLED and COMPLETED."""
    return (state.split() or ["UNKNOWN"])[0].rstrip("+").upper()
