"""What Snakemake's rules ask of the library: targets, inputs, containers, refusals.

Plans are made lazily, by input functions of the main process alone; jobs on a cluster parse the same
Snakefile and plan nothing.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from snakemake.io import ancient

from opatlas import lock
from opatlas.baseline import side
from opatlas.catalogue import load as catalogue
from opatlas.checks import report as checks
from opatlas.cluster import queue
from opatlas.cluster import resources as cluster
from opatlas.config import datasets
from opatlas.config.datasets import RESULTS, SKIPPED, Dataset
from opatlas.errors import UserError
from opatlas.files import settle_times
from opatlas.planning import summary
from opatlas.planning.dataset import PlannedDataset, plan_dataset
from opatlas.shards.quarantine import note_path
from opatlas.shards.state import ShardState, queue_digest, states
from opatlas.staleness.fingerprint import SHORT, interface_digest
from opatlas.tables.merge import tables_folder

# The executor of profiles/slurm, as Snakemake names it.
SLURM = "opatlas-slurm"

P = ParamSpec("P")
R = TypeVar("R")


def clearly(function: Callable[P, R]) -> Callable[P, R]:
    """A user's mistake ends the run with its message alone.

    SystemExit, because Snakemake wraps every other exception of a Snakefile and of an input function
    into text of its own and a traceback.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except UserError as error:
            raise SystemExit(f"opatlas: {error}") from None

    return call


class Dag:
    """The bridge of one run. `config` is Snakemake's: what --config and --configfile say."""

    @clearly
    def __init__(self, workflow: Any, config: Mapping[str, Any]) -> None:
        self.root = Path.cwd()
        self.workflow = workflow
        self.overrides = dict(config)
        self.config = datasets.load(self.root, self.overrides)
        baseline = self.config.settings.baseline
        self._baseline = side.find(self.root, baseline) if workflow.is_main_process and baseline else None
        self._planned: dict[str, PlannedDataset] = {}
        self._states: dict[str, list[ShardState]] = {}
        self._queues: dict[str, str] = {}
        self._checked: dict[str, tuple[int, int] | None] = {}
        self._by_shard: dict[tuple[str, str, str], ShardState] = {}
        self._lock: lock.Lock | None = None
        _use_this_python()
        if workflow.is_main_process:
            atexit.register(self._finish)

    @property
    def overrides_json(self) -> str:
        return json.dumps(self.overrides, sort_keys=True)

    @functools.cached_property
    def datasets(self) -> list[Dataset]:
        return self.config.datasets()

    # --- targets -------------------------------------------------------------------------------

    @clearly
    def published(self, name: str) -> list[str]:
        """What a dataset consists of: the stamp in its directory, and every shard it is made of.

        A damaged shard file exists, so its job would not run by itself: the note that it was moved away
        is wanted too.
        """
        planned = self._plan(name)
        if self._baseline:
            self._baseline.refuse(self.root / planned.dataset.target)
        stamp = planned.dataset.target / f".dataset-{planned.fingerprint[:SHORT]}"
        return [str(stamp), *self._shards(name)]

    @clearly
    def skipped(self, name: str) -> list[str]:
        """The shards of cases that skip entries keep out of a dataset."""
        return self._shards(f"{name}{SKIPPED}")

    def _shards(self, name: str) -> list[str]:
        planned = self._plan(name)
        notes = [note_path(self.root, state.shard) for state in self._states[name] if state.damage]
        return [str(path) for path in (*(shard.path for shard in planned.all_shards), *notes)]

    @clearly
    def plan_stamp(self, name: str) -> str:
        """The file that the plan tables of today's plan hold."""
        planned = self._plan(name)
        return str(planned.dataset.plan_target / f".plan-{planned.plan_fingerprint[:SHORT]}")

    @clearly
    def unknown(self, wildcards: Any) -> str:
        """There is no such target; says which there are."""
        raise UserError(self.config.explain(str(wildcards.target).rstrip("/")))

    # --- inputs --------------------------------------------------------------------------------

    # A file that exists under a name that carries its fingerprint needs nothing, so its job asks for
    # nothing: an input that is missing would make it run again, ancient or not.

    @clearly
    def shard_files(self, wildcards: Any) -> list[str]:
        """Every shard file of a dataset, unless it is merged already."""
        name = f"{wildcards.backend}/{wildcards.version}/{wildcards.platform}"
        if self._exists(RESULTS / "tables" / name / wildcards.fingerprint / "tables.json"):
            return []
        planned = self._plan(name)
        if wildcards.fingerprint != planned.fingerprint[:SHORT]:
            raise UserError(f"results/{name}: no current plan has the fingerprint {wildcards.fingerprint}")
        return [ancient(str(shard.path)) for shard in planned.all_shards]

    def merged(self, wildcards: Any) -> list[str]:
        """The merged tables of a dataset, unless it is published already."""
        name = f"{wildcards.backend}/{wildcards.version}/{wildcards.platform}"
        tables = RESULTS / "tables" / name / wildcards.fingerprint / "tables.json"
        stamp = RESULTS / name / f".dataset-{wildcards.fingerprint}"
        return [] if self._exists(stamp) else [ancient(str(tables))]

    def _exists(self, path: Path) -> bool:
        return (self.root / path).exists()

    @clearly
    def receipt(self, wildcards: Any) -> list[str]:
        """The proof that what a shard lacks was measured; nothing where it lacks nothing."""
        if not self.workflow.is_main_process:
            return []
        state = self._state(wildcards)
        return [ancient(str(state.receipt))] if state.missing else []

    @clearly
    def quarantined(self, wildcards: Any) -> list[str]:
        """The note that a damaged file of this shard was moved away, where there is such a file."""
        if not self.workflow.is_main_process:
            return []
        state = self._state(wildcards)
        return [str(note_path(self.root, state.shard))] if state.damage else []

    @clearly
    def before_measuring(self, wildcards: Any) -> list[str]:
        """The tickets of the dataset; for the audit sample also every shard that is measured before it."""
        if not self.workflow.is_main_process:
            return []
        shard = self._state(wildcards).shard
        if self._exists(shard.attempts / f"{wildcards.todo}.done.json"):
            return []
        name = shard.dataset.name
        planned = self._planned[name]
        earlier = planned.shards if shard in planned.repeats else ()
        queue = RESULTS / "queues" / name / f"{self._queues[name]}.json"
        first = (queue, *self._interface(planned, shard.op))
        return [ancient(str(path)) for path in (*first, *(other.path for other in earlier))]

    def _interface(self, planned: PlannedDataset, op: str) -> list[Path]:
        """The proof that the framework has what the runners use; none for a backend that declares nothing.

        One for all ops of a runtime, filed under the first of them.
        """
        dataset = planned.dataset
        runtime = self.config.runtime(dataset, op)
        ops = sorted({s.op for s in planned.shards if self.config.runtime(dataset, s.op) == runtime})
        proof = interface_digest(dataset, runtime)
        return [RESULTS / "interface" / dataset.base / ops[0] / f"{proof}.json"] if proof else []

    # --- jobs ----------------------------------------------------------------------------------

    @clearly
    def container(self, wildcards: Any) -> str | None:
        """The image that a shard is measured in; None for the host's own environment."""
        dataset = self._base(wildcards)
        runtime = self.config.runtime(dataset, wildcards.op)
        return f"docker://{runtime.image}" if runtime and runtime.image else None

    def on_host(self, wildcards: Any) -> None:
        """No image: what only moves files runs in the environment that runs Snakemake."""

    @clearly
    def dataset_of(self, wildcards: Any) -> str:
        """The name of the dataset that a shard is planned for."""
        return self._state(wildcards).shard.dataset.name

    def threads(self, wildcards: Any) -> int:
        """A measurement on the CPU takes the whole machine; one on a GPU a single core of it."""
        return 1 if self.config.platforms[wildcards.platform].sm else 10_000

    def slurm(self, name: str) -> Callable[..., Any]:
        """The function that gives one of the resources of cluster/resources.py for a shard's job."""

        @clearly
        def resource(wildcards: Any, attempt: int) -> Any:
            platform = self.config.platforms[wildcards.platform]
            state = self._state(wildcards) if self.workflow.is_main_process and platform.slurm else None
            seconds, gpus = (state.missing_s, state.shard.gpus) if state else (0.0, 1)
            return cluster.request(platform.slurm, seconds, gpus, attempt)[name]

        return resource

    @clearly
    def start(self) -> None:
        """Refuses what must not run, and takes the lock of this working tree. For `onstart`."""
        if not self.workflow.is_main_process:
            return
        self._refuse_empty_runs()
        self._refuse_host_runs()
        self._refuse_platforms_without_slurm()
        self._lock = lock.take(self.root / RESULTS)
        settle_times(self.root / RESULTS)

    def _refuse_empty_runs(self) -> None:
        for name, planned in self._planned.items():
            if not planned.shards and not planned.dataset.skipped:
                folder = f"workflow/opatlas/backends/{planned.dataset.backend}"
                raise UserError(
                    f"results/{name}: no op of this dataset has a runner in {folder}: "
                    "it can be planned (-n), not measured"
                )

    def _refuse_host_runs(self) -> None:
        methods = {str(method) for method in self.workflow.deployment_settings.deployment_method}
        if any("apptainer" in method for method in methods):
            return
        for name, found in self._states.items():
            for state in found:
                runtime = self.config.runtime(state.shard.dataset, state.shard.op)
                if state.missing and runtime and runtime.image:
                    raise UserError(
                        f"results/{name}: {state.shard.op} is pinned to the image {runtime.image}, and this "
                        "run would measure it on the host: add --sdm apptainer, or use --profile slurm"
                    )

    def _refuse_platforms_without_slurm(self) -> None:
        if self.workflow.executor_plugin.name != SLURM:
            return
        for name, planned in self._planned.items():
            platform = planned.dataset.platform
            if platform.slurm is None and any(state.missing for state in self._states[name]):
                raise UserError(
                    f"config/platforms.yaml: {platform.name}.slurm is missing: this run would submit jobs "
                    f"of results/{name} to SLURM; add slurm: {{partition: ..., gres: 'gpu:...:1'}}, or "
                    "leave out --profile slurm to measure on this machine"
                )

    # --- plans ---------------------------------------------------------------------------------

    def _end_earlier_jobs(self) -> None:
        """Jobs of a run that died would change what is missing while it is planned, and measure it twice."""
        holder = lock.read(self.root / RESULTS)
        if self.workflow.executor_plugin.name != SLURM or (holder and not holder.is_dead):
            return
        if ended := queue.end_earlier(self.root):
            print(f"opatlas: ended SLURM jobs of an earlier run: {' '.join(ended)}", file=sys.stderr)

    def _plan(self, name: str) -> PlannedDataset:
        if not self._planned:
            self._end_earlier_jobs()
        if name not in self._planned:
            planned = plan_dataset(self.root, self.config, self._catalogue, self.config.dataset(name))
            self._planned[name] = planned
            self._states[name] = states(self.root, planned.all_shards)
            self._queues[name] = queue_digest(state for state in self._states[name] if state.missing)
            for state in self._states[name]:
                self._by_shard.setdefault((planned.dataset.base, state.shard.op, state.shard.key), state)
            self._checked[name] = _state_of(self.root / self._checks(name))
        return self._planned[name]

    def _checks(self, name: str) -> Path:
        """Where publishing writes what checks found."""
        return tables_folder(self._planned[name]) / checks.RESULT

    @functools.cached_property
    def _catalogue(self) -> catalogue.Catalogue:
        return catalogue.load(self.root)

    def _base(self, wildcards: Any) -> Dataset:
        return self.config.dataset(f"{wildcards.backend}/{wildcards.version}/{wildcards.platform}")

    def _state(self, wildcards: Any) -> ShardState:
        """The state of the shard that wildcards name; a shard asked for by itself plans its dataset."""
        base = f"{wildcards.backend}/{wildcards.version}/{wildcards.platform}"
        key = (base, wildcards.op, wildcards.shard)
        for dataset in self.datasets:
            if key in self._by_shard:
                break
            if dataset.base == base:
                self._plan(dataset.name)
        if key not in self._by_shard:
            raise UserError(f"results/shards/{'/'.join(key)}.parquet: no current plan has this shard")
        return self._by_shard[key]

    def _finish(self) -> None:
        """At the very end: what checks found, or the plan of a dry run; and the lock given back."""
        if self._lock:
            self._lock.release()
        for name, before in self._checked.items():
            path = self._checks(name)
            if (found := _state_of(self.root / path)) and found != before:
                sys.stdout.write(f"\n{checks.read(self.root / path, f'results/{name}').text()}\n")
        if self._planned and self.workflow.dryrun:
            for name, planned in self._planned.items():
                sys.stdout.write(summary.text(self.root, planned, self._states[name]))
            sys.stdout.flush()


def _state_of(path: Path) -> tuple[int, int] | None:
    """What tells a file from the one that takes its place; None where there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns


def _use_this_python() -> None:
    """Jobs on the host run the interpreter that runs Snakemake, whether or not its environment is active."""
    folder = str(Path(sys.executable).parent)
    if os.environ.get("PATH", "").split(os.pathsep)[0] != folder:
        os.environ["PATH"] = os.pathsep.join([folder, os.environ.get("PATH", "")])
