"""A real SLURM of its own on this machine: munged, slurmctld, a slurmd per node, slurmdbd where wanted.

Needs root. Everything lies in one folder and listens on ports of its own, so several may run side by side
and beside a SLURM of the machine's. Without this machine's devices, a node's GPUs are plain files.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "sinfo", "scontrol", "scancel")
ACCOUNTING = ("slurmdbd", "sacct", "sacctmgr", "mariadbd", "mariadb-install-db")
START_S = 60.0


@dataclass(frozen=True)
class Node:
    """A node: how many GPUs of which type, cores and memory it offers, and the files that stand for GPUs."""

    name: str
    gpus: int = 1
    gpu: str = "fake"
    cpus: int = 8
    mem_mb: int = 64000
    devices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Partition:
    name: str
    nodes: tuple[str, ...]
    options: str = ""


@dataclass
class Slurm:
    """One cluster in `folder`; `options` are further lines of slurm.conf, `cgroup` those of cgroup.conf."""

    folder: Path
    nodes: Sequence[Node]
    partitions: Sequence[Partition]
    accounting: bool = False
    options: Sequence[str] = ()
    cgroup: Sequence[str] = ()
    plugins: Path | None = None
    ports: dict[str, int] = field(default_factory=dict)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @staticmethod
    def missing(accounting: bool = False) -> list[str]:
        """The programs that are needed and not installed."""
        wanted = (*PROGRAMS, *(ACCOUNTING if accounting else ()))
        return [name for name in wanted if shutil.which(name, path=_search_path()) is None]

    @property
    def environment(self) -> dict[str, str]:
        """What a program needs to speak to this cluster."""
        return {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": _search_path()}

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o755)
        names = ["slurmctld", *(node.name for node in self.nodes)]
        self.ports = dict(zip([*names, "slurmdbd", "mariadb"], _free_ports(len(names) + 2), strict=True))
        self._start_munged()
        self._write_configuration()
        if self.accounting:
            self._start_database()
        self.run_daemon("slurmctld", "slurmctld", "-D", "-i")
        self._until("slurmctld answers", lambda: self._ok("scontrol", "ping"))
        for node in self.nodes:
            self.start_node(node.name)
        self._until(
            "all nodes are idle", lambda: self._states() == {node.name: "idle" for node in self.nodes}
        )

    def stop(self) -> None:
        """Cancels all jobs and ends the daemons, the last one started first."""
        if "slurmctld" in self.processes:
            self.empty()
        for name in reversed(list(self.processes)):
            self.end(name)

    def empty(self) -> None:
        """Cancels all jobs and waits until they are gone."""
        self.command("scancel", "--user=root")
        self._until("the queue is empty", lambda: not self.squeue())

    def start_node(self, name: str) -> None:
        self.run_daemon(name, "slurmd", "-D", "-N", name)

    def end(self, name: str, number: int = signal.SIGTERM) -> None:
        """Ends one daemon and waits for it."""
        process = self.processes.pop(name)
        process.send_signal(number)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def command(self, *words: str) -> str:
        """The output of a SLURM command that must succeed."""
        done = subprocess.run(
            words, env=self.environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
        return done.stdout

    def squeue(self, form: str = "%i %T") -> list[str]:
        """A line for each job that is not over."""
        return self.command("squeue", "--noheader", f"--format={form}").splitlines()

    def scontrol_job(self, job: str) -> str:
        return self.command("scontrol", "--oneliner", "show", "job", job)

    # --- inside ----------------------------------------------------------------------------------

    def run_daemon(self, name: str, *words: str) -> None:
        log = (self.folder / f"{name}.out").open("ab")
        with log:
            self.processes[name] = subprocess.Popen(
                words,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _start_munged(self) -> None:
        for name in ("munge", "state", "spool"):
            (self.folder / name).mkdir(mode=0o755, exist_ok=True)
        key = self.folder / "munge/key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        files = {"key": "key", "socket": "socket", "pid": "pid", "log": "log", "seed": "seed"}
        self.run_daemon(
            "munged", "munged", "--foreground", "--force",
            f"--key-file={key}",
            f"--socket={self.folder}/munge/{files['socket']}",
            f"--pid-file={self.folder}/munge/{files['pid']}",
            f"--log-file={self.folder}/munge/{files['log']}",
            f"--seed-file={self.folder}/munge/{files['seed']}",
        )  # fmt: skip
        self._until("munged listens", (self.folder / "munge/socket").exists)

    def _write_configuration(self) -> None:
        folder, host = self.folder, socket.gethostname()
        lines = [
            "ClusterName=opatlas",
            f"SlurmctldHost={host}(127.0.0.1)",
            f"SlurmctldPort={self.ports['slurmctld']}",
            "SlurmUser=root",
            "SlurmdUser=root",
            "AuthType=auth/munge",
            f"AuthInfo=socket={folder}/munge/socket",
            "CredType=cred/munge",
            f"StateSaveLocation={folder}/state",
            f"SlurmdSpoolDir={folder}/spool/%n",
            f"SlurmctldPidFile={folder}/slurmctld.pid",
            f"SlurmdPidFile={folder}/%n.pid",
            f"SlurmctldLogFile={folder}/slurmctld.log",
            f"SlurmdLogFile={folder}/%n.log",
            "SwitchType=switch/none",
            "MpiDefault=none",
            "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_Core_Memory",
            "SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0",
            "ReturnToService=2",
            "GresTypes=gpu",
            # Nodes offer what they are said to, also where this machine has less.
            "SlurmdParameters=config_overrides",
            "SlurmdTimeout=10",
            "SlurmctldTimeout=10",
            "InactiveLimit=0",
            "MinJobAge=300",
            "PropagateResourceLimits=NONE",
            *self.options,
        ]
        if not any(line.startswith("ProctrackType") for line in self.options):
            lines += ["ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none"]
        if not any(line.startswith("KillWait") for line in self.options):
            lines += ["KillWait=10"]
        if self.plugins:
            lines += [f"PluginDir={self.plugins}"]
        if self.accounting:
            lines += [
                "AccountingStorageType=accounting_storage/slurmdbd",
                "AccountingStorageHost=127.0.0.1",
                f"AccountingStoragePort={self.ports['slurmdbd']}",
                # With munge this is the socket, not a secret.
                f"AccountingStoragePass={folder}/munge/socket",
            ]
        gres = []
        for node in self.nodes:
            devices = node.devices or tuple(self._fake_device(node, number) for number in range(node.gpus))
            gres += [f"NodeName={node.name} Name=gpu Type={node.gpu} File={device}" for device in devices]
            lines.append(
                f"NodeName={node.name} NodeHostname={host} NodeAddr=127.0.0.1 Port={self.ports[node.name]} "
                f"CPUs={node.cpus} RealMemory={node.mem_mb} Gres=gpu:{node.gpu}:{node.gpus} State=UNKNOWN"
            )
        for number, partition in enumerate(self.partitions):
            default = "YES" if number == 0 else "NO"
            lines.append(
                f"PartitionName={partition.name} Nodes={','.join(partition.nodes)} Default={default} "
                f"MaxTime=INFINITE State=UP {partition.options}"
            )
        (folder / "slurm.conf").write_text("\n".join(lines) + "\n")
        (folder / "gres.conf").write_text("\n".join(gres) + "\n")
        if self.cgroup:
            (folder / "cgroup.conf").write_text("\n".join(self.cgroup) + "\n")

    def _fake_device(self, node: Node, number: int) -> str:
        path = self.folder / "devices" / f"{node.name}-gpu{number}"
        path.parent.mkdir(exist_ok=True)
        path.touch()
        return str(path)

    def _start_database(self) -> None:
        data, port = self.folder / "mariadb", self.ports["mariadb"]
        data.mkdir(mode=0o755)
        subprocess.run(
            ["mariadb-install-db", f"--datadir={data}", "--user=root", "--skip-test-db",
             "--auth-root-authentication-method=normal"],
            env=self.environment, check=True, capture_output=True, timeout=120,
        )  # fmt: skip
        self.run_daemon(
            "mariadb", "mariadbd", "--no-defaults", "--user=root", f"--datadir={data}",
            f"--socket={data}/socket", f"--port={port}", "--bind-address=127.0.0.1",
            "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=32M",
        )  # fmt: skip
        client = ["mariadb", "--no-defaults", f"--socket={data}/socket", "--user=root"]
        self._until("mariadb answers", lambda: self._ok(*client, "--execute=select 1"))
        user = (
            "create user slurm@'127.0.0.1' identified by 'slurm'; grant all on slurm.* to slurm@'127.0.0.1'"
        )
        self.command(*client, f"--execute={user}")
        configuration = self.folder / "slurmdbd.conf"
        configuration.write_text(
            f"DbdHost={socket.gethostname()}\nDbdAddr=127.0.0.1\nDbdPort={self.ports['slurmdbd']}\nSlurmUser=root\n"
            f"AuthType=auth/munge\nAuthInfo=socket={self.folder}/munge/socket\n"
            f"LogFile={self.folder}/slurmdbd.log\nPidFile={self.folder}/slurmdbd.pid\n"
            f"StorageType=accounting_storage/mysql\nStorageHost=127.0.0.1\nStoragePort={port}\n"
            "StorageUser=slurm\nStoragePass=slurm\nStorageLoc=slurm\n"
        )
        configuration.chmod(0o600)
        self.run_daemon("slurmdbd", "slurmdbd", "-D")
        self._until("slurmdbd answers", lambda: self._ok("sacctmgr", "--noheader", "show", "cluster"))
        self.command("sacctmgr", "--immediate", "add", "cluster", "opatlas")

    def _states(self) -> dict[str, str]:
        done = subprocess.run(
            ["sinfo", "--noheader", "--Node", "--format=%N %t"],
            env=self.environment, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        return dict(line.split() for line in done.stdout.splitlines())

    def _ok(self, *words: str) -> bool:
        done = subprocess.run(words, env=self.environment, capture_output=True, timeout=60, check=False)
        return done.returncode == 0

    def _until(self, what: str, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_S
        while not ready():
            for name, process in self.processes.items():
                if process.poll() is not None:
                    raise RuntimeError(f"{name} ended with {process.returncode}: see {self.folder}/{name}.*")
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {START_S:.0f} s until {what}: see {self.folder}")
            time.sleep(0.1)


def _search_path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for listener in sockets:
            listener.bind(("127.0.0.1", 0))
        return [listener.getsockname()[1] for listener in sockets]
    finally:
        for listener in sockets:
            listener.close()
