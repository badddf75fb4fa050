"""Snakemake's executor for SLURM, for jobs whose success is proved by a receipt.

A subclass of snakemake-executor-plugin-slurm 2.8.0, which Snakemake finds by this package's name. It differs
in what is here: how a job is started, and what is believed of its end.
"""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import snakemake_executor_plugin_slurm as slurm
from opatlas.cluster import job as launcher
from opatlas.cluster import queue
from opatlas.cluster.resources import warning_s
from opatlas.cluster.states import HINTS, INNOCENT_STATES, NODE_STATES, Job, Phase
from opatlas.errors import UserError
from opatlas.harness import journal, receipt, ticket
from snakemake_executor_plugin_slurm.submit_string import get_submit_command
from snakemake_executor_plugin_slurm.utils import set_gres_string
from snakemake_executor_plugin_slurm.validation import validate_or_get_slurm_job_id
from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.settings import CommonSettings

common_settings = CommonSettings(
    non_local_exec=True,
    implies_no_shared_fs=False,
    job_deploy_sources=False,
    pass_envvar_declarations_to_cmd=False,
    auto_deploy_default_storage_provider=False,
    init_seconds_before_status_checks=1,
)

# What sbatch says when it is worth asking again, and how long that is done.
TRANSIENT = ("timed out", "Unable to contact", "temporarily", "try again", "Connection refused", "Zero Bytes")
PATIENCE_S = 600.0
PAUSE_S = 10.0


@dataclass
class ExecutorSettings(slurm.ExecutorSettings):  # type: ignore[misc]
    """The plugin's settings, with defaults that suit jobs which measure.

    Snakemake makes options of them, and does not read `str | None`.
    """

    jobname_prefix: Optional[str] = field(  # noqa: UP045
        default="opatlas", metadata={"help": "Prefix of job names."}
    )
    logdir: Optional[Path] = field(  # noqa: UP045
        default=Path("results/logs/slurm"), metadata={"help": "Where the logs of SLURM jobs go."}
    )
    status_command: Optional[str] = field(  # noqa: UP045
        default=None, metadata={"help": "sacct or squeue; without it, the one that works."}
    )
    init_seconds_before_status_checks: Optional[int] = field(  # noqa: UP045
        default=10, metadata={"help": "Seconds between two looks at the jobs, at first."}
    )
    max_seconds_between_status_checks: int = field(
        default=60, metadata={"help": "Seconds between two looks at the jobs, at most."}
    )

    def __post_init__(self) -> None:
        """Snakemake alone repeats jobs, and logs are evidence: neither is left to a choice."""
        self.no_requeue = True
        self.keep_successful_logs = True
        super().__post_init__()


class Executor(slurm.Executor):  # type: ignore[misc]
    """Submits and follows jobs. The receipt of a job, its only output, says whether it succeeded."""

    def __init__(self, workflow: Any, logger: Any) -> None:
        # Inside a job the plugin forgets every variable of SLURM's; this one says where SLURM is.
        configuration = {name: os.environ[name] for name in ("SLURM_CONF",) if name in os.environ}
        super().__init__(workflow, logger)
        os.environ.update(configuration)

    def __post_init__(self, test_mode: bool = False) -> None:
        super().__post_init__(test_mode)
        self._watch: queue.Watch | None = None
        # Nodes on which a job failed, by the folder of its shard.
        self._avoided: dict[Path, set[str]] = {}
        self._stuck: set[tuple[str, str]] = set()

    @property
    def cores(self) -> str:
        """The cores of the node that a job gets, not those of this host."""
        return "all"

    # --- submission ------------------------------------------------------------------------------

    def additional_general_args(self) -> str:
        """In the job, Snakemake runs the rule itself: no step, no srun."""
        return "--executor local"

    def run_job(self, job: Any) -> None:
        """Submits a job. In a thread."""
        try:
            job_id = self._submit(job)
            self.logger.info(f"opatlas: {_shard(job)} was submitted as SLURM job {job_id}")
            info = SubmittedJobInfo(job, job_id, {"slurm_logfile": self._log(job, job_id)})
            self._report_job_submission_threadsafe(info)
        except (UserError, WorkflowError, OSError, subprocess.SubprocessError) as error:
            self._report_job_error_threadsafe(SubmittedJobInfo(job), f"opatlas: {error}\n")

    def _submit(self, job: Any) -> str:
        """The id of the new job. Repeats while SLURM is busy, but never a submission that succeeded."""
        call = self._call(job)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            done = subprocess.run(
                call, input=self._script(job), shell=True, capture_output=True, text=True, check=False
            )
            if done.returncode == 0:
                return str(validate_or_get_slurm_job_id(done.stdout.strip().split(";")[0], done.stdout))
            said = " ".join(done.stderr.split())
            if not any(word in said for word in TRANSIENT) or time.monotonic() > deadline:
                raise UserError(f"sbatch refused {_shard(job)}: {said}\n{_advice(said)}    {call}")
            self.logger.warning(f"opatlas: sbatch: {said}; trying again in {PAUSE_S:.0f} s")
            time.sleep(PAUSE_S)
            if accepted := self._accepted(job):
                return accepted

    def _accepted(self, job: Any) -> str | None:
        """The job of a submission whose answer was lost."""
        try:
            found = queue.in_flight(Path(self.workflow.workdir_init))
        except UserError:
            return None
        return next((one.id for one in found if one.receipt == _receipt(job)), None)

    def _call(self, job: Any) -> str:
        log = self._log(job, "%j")
        log.parent.mkdir(parents=True, exist_ok=True)
        wildcards = job.wildcards
        dataset = f"{wildcards.backend}/{wildcards.version}/{wildcards.platform}"
        parameters = {
            "run_uuid": self.run_uuid,
            "slurm_logfile": log,
            "comment_str": queue.comment(wildcards.op, wildcards.shard, dataset, str(_receipt(job))),
            "account": f"-A {shlex.quote(account)}"
            if (account := job.resources.get("slurm_account"))
            else "",
            "partition": f"-p {shlex.quote(job.resources.slurm_partition)}",
            "workdir": self.workflow.workdir_init,
        }
        avoided = self._nodes_to_avoid(job)
        call = get_submit_command(job, parameters, self.workflow.executor_settings, avoided)
        warning = warning_s(job.resources.runtime)
        return f"{call} --nodes=1 --ntasks=1 --signal=B:USR1@{warning}{set_gres_string(job)}"

    def _script(self, job: Any) -> str:
        gpus = job.resources.gres.rpartition(":")[2]
        words = [
            sys.executable,
            launcher.__file__,
            gpus,
            str(job.resources.runtime),
            self.format_job_exec(job),
        ]
        return f"#!/bin/sh\nexec {shlex.join(words)}\n"

    def _nodes_to_avoid(self, job: Any) -> set[str]:
        """Nodes that failed, as long as there are others."""
        avoided: set[str] = self._failed_nodes | self._avoided.get(_receipt(job).parent, set())
        if avoided and not queue.nodes(job.resources.slurm_partition) - avoided:
            self.logger.warning(
                f"opatlas: every node of {job.resources.slurm_partition} has failed a job: none is left out"
            )
            return set()
        return avoided

    def _log(self, job: Any, job_id: str) -> Path:
        wildcards = job.wildcards
        where = (wildcards.backend, wildcards.version, wildcards.platform, wildcards.op, wildcards.shard)
        return Path(self.slurm_logdir, *where, f"{job_id}.log")

    # --- what becomes of a job -------------------------------------------------------------------

    async def check_active_jobs(self, active_jobs: list[SubmittedJobInfo]) -> AsyncIterator[SubmittedJobInfo]:
        """Reports the jobs that are over and yields the others."""
        settings = self.workflow.executor_settings
        if not active_jobs:
            self.next_seconds_between_status_checks = settings.init_seconds_before_status_checks
            return
        async with self.status_rate_limiter:
            seen = self._watched().look([info.external_jobid for info in active_jobs])
        over = 0
        for info in active_jobs:
            if info.external_jobid in seen and self._is_over(info, seen[info.external_jobid]):
                over += 1
            else:
                yield info
        pause = self.next_seconds_between_status_checks + settings.init_seconds_before_status_checks
        self.next_seconds_between_status_checks = (
            settings.init_seconds_before_status_checks
            if over
            else min(pause, settings.max_seconds_between_status_checks)
        )

    def _watched(self) -> queue.Watch:
        if self._watch is None:
            tool, sentence = queue.preflight(self.workflow.executor_settings.status_command)
            self.logger.info(f"opatlas: {sentence}")
            self._watch = queue.Watch(tool, self.logger.warning)
        return self._watch

    def _is_over(self, info: SubmittedJobInfo, found: Job | None) -> bool:
        """Whether a job is over; if so, it is reported."""
        if found and found.phase is Phase.ACTIVE:
            self._tell_if_stuck(info, found)
            return False
        if found and found.phase is Phase.HELD:
            queue.cancel([info.external_jobid])
        self._note_node(info.job, found)
        if (found and found.state == "COMPLETED") or _is_proved(info.job):
            self.report_job_success(info)
        else:
            self.report_job_error(info, msg=_message(info, found), aux_logs=[str(info.aux["slurm_logfile"])])
        return True

    def _tell_if_stuck(self, info: SubmittedJobInfo, found: Job) -> None:
        known = (info.external_jobid, found.reason)
        if found.is_stuck and known not in self._stuck:
            self._stuck.add(known)
            self.logger.warning(
                f"opatlas: SLURM job {info.external_jobid} for {_shard(info.job)} can't start: "
                f"{found.reason}. See 'scontrol show job {info.external_jobid}' and slurm of its platform in "
                "config/platforms.yaml; once scancelled, it is submitted anew."
            )

    def _note_node(self, job: Any, found: Job | None) -> None:
        if not found or not found.node or found.state == "COMPLETED" or found.state in INNOCENT_STATES:
            return
        if found.state in NODE_STATES:
            self._failed_nodes.add(found.node)
        self._avoided.setdefault(_receipt(job).parent, set()).add(found.node)


def _receipt(job: Any) -> Path:
    return Path(str(job.output[0]))


def _shard(job: Any) -> str:
    return f"{job.wildcards.op} {job.wildcards.shard}"


def _is_proved(job: Any) -> bool:
    """Whether every case of the job's ticket has an outcome.

    Its journals count too, and the receipt is then written here: the job may have ended just before it did.
    """
    path = _receipt(job)
    if path.exists():
        return True
    try:
        wanted = ticket.load(path.with_name(path.name.replace(".done.json", ticket.SUFFIX)))
        journals = journal.read(wanted.folder, wanted.context)
        if any(case.key not in journals.outcomes for case in wanted.cases):
            return False
        receipt.write(wanted, journals)
    except UserError:
        return False
    return True


def _message(info: SubmittedJobInfo, found: Job | None) -> str:
    state = found.state if found else "gone from SLURM's books without a receipt"
    where = f" on {found.node}" if found and found.node else ""
    hint = f": {HINTS[state]}" if state in HINTS else ""
    return (
        f"opatlas: SLURM job {info.external_jobid} for {_shard(info.job)} ended{where} as {state}{hint}. "
        "Finished cases are kept.\n"
    )


def _advice(said: str) -> str:
    """What is to be mended in config/platforms.yaml, where sbatch's words tell."""
    keys = {
        "partition": "slurm.partition",
        "account": "slurm.account",
        "qos": "slurm.qos",
        "generic resource": "slurm.gres",
        "time limit": "slurm.max_minutes",
        "configuration is not available": "slurm.gres, slurm.cpus or slurm.mem_mb",
    }
    found = [key for word, key in keys.items() if word in said.lower()]
    return f"    see {found[0]} of this platform in config/platforms.yaml\n" if found else ""
