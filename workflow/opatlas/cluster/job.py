"""What a SLURM job runs first: `python job.py GPUS MINUTES COMMAND`, the command being for a shell.

Standard library only, a program of one file. It refuses what a site's settings may make of a job, hands on
what a container needs to know of it, and sees to it that a signal reaches the supervisor and ends nothing
else: SLURM ends a job as soon as its first process ends.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

# SLURM's warning before the time is over comes to this process alone; when SLURM ends a job early, TERM comes
# to all of its processes.
FORWARDED = (signal.SIGUSR1, signal.SIGUSR2)
OUTLIVED = (*FORWARDED, signal.SIGTERM)

END = "OPATLAS_JOB_END"
# What a container started with a clean environment gets all the same.
HANDED_ON = ("SLURM_JOB_ID", "SLURM_TMPDIR", "CUDA_VISIBLE_DEVICES", END)
USAGE = 2


def refusal(gpus: int, environment: dict[str, str]) -> str | None:
    """Why this process must not measure: a second copy of it may run, or it has other GPUs than it needs."""
    if int(environment.get("SLURM_PROCID", "0")) > 0:
        return (
            f"duplicate task {environment['SLURM_PROCID']} of job {environment.get('SLURM_JOB_ID')}: "
            "one process measures; let the site's defaults ask for a single task"
        )
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    if gpus and visible is not None and len(list(filter(None, visible.split(",")))) != gpus:
        return (
            f"the job asked for {gpus} GPU{'s' if gpus > 1 else ''} and sees "
            f"CUDA_VISIBLE_DEVICES={visible!r}: see slurm.gres of its platform in config/platforms.yaml"
        )
    return None


def handed_on(minutes: int, environment: dict[str, str]) -> dict[str, str]:
    """The environment with the end of the job in it, and with what a container is to see."""
    end = environment.get("SLURM_JOB_END_TIME") or str(int(time.time()) + 60 * minutes)
    told = {**environment, END: end}
    for name in HANDED_ON:
        if name in told:
            told[f"APPTAINERENV_{name}"] = told[name]
    return told


def ignore() -> None:
    """In the child: what stands between here and the supervisor outlives a signal."""
    for number in OUTLIVED:
        signal.signal(number, signal.SIG_IGN)


def main(arguments: list[str]) -> int:
    if len(arguments) != 3:
        print("usage: job.py GPUS MINUTES COMMAND", file=sys.stderr)
        return USAGE
    gpus, minutes, command = int(arguments[0]), int(arguments[1]), arguments[2]
    if why := refusal(gpus, dict(os.environ)):
        print(f"opatlas: {why}", file=sys.stderr)
        return 1
    environment = handed_on(minutes, dict(os.environ))
    child = subprocess.Popen(["/bin/sh", "-c", command], env=environment, preexec_fn=ignore)

    def forward(number: int, frame: object) -> None:
        # This process gets it too, and must not pass it on again.
        signal.signal(number, signal.SIG_IGN)
        os.killpg(0, number)
        signal.signal(number, forward)

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for number in FORWARDED:
        signal.signal(number, forward)
    return child.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
