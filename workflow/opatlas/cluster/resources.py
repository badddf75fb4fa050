"""What a job that measures a shard asks SLURM for."""

from __future__ import annotations

import math
import re
from typing import Any

from opatlas.config.platforms import Slurm

# Time that a job takes beside its cases, in minutes: starting the image, importing the framework, compiling
# kernels, timing the control cases. A job gets this and FACTOR times what its cases are planned to take, and
# as much again with each attempt.
START_MINUTES = 15
FACTOR = 2.0
# SLURM warns a job so long before its time is over, at most: the running case can then still end.
WARNING_S = 120


def request(slurm: Slurm | None, seconds: float, gpus: int, attempt: int) -> dict[str, Any]:
    """Snakemake's resources of a job whose cases take `seconds` on each of `gpus` devices.

    A platform without a SLURM section asks for nothing: None, or 0 where Snakemake wants a number.
    """
    if slurm is None:
        none = dict.fromkeys(("slurm_partition", "gres", "cpus_per_task", "slurm_account", "qos"))
        return {**none, "mem_mb": 0, "runtime": 0}
    minutes = attempt * math.ceil(START_MINUTES + FACTOR * seconds / 60)
    return {
        "slurm_partition": slurm.partition,
        "gres": re.sub(r"[0-9]+$", str(gpus), slurm.gres),
        "cpus_per_task": slurm.cpus,
        "mem_mb": slurm.mem_mb,
        "runtime": min(minutes, slurm.max_minutes or minutes),
        "slurm_account": slurm.account,
        "qos": slurm.qos,
    }


def warning_s(minutes: int) -> int:
    """How long before the end of its time a job is warned, in seconds."""
    return min(WARNING_S, 60 * minutes // 3)
