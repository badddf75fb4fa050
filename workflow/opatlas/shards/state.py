"""Where each shard of a dataset stands: its file is there, can be assembled, or needs measuring."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from opatlas.errors import UserError
from opatlas.harness.ticket import SUFFIX, Key
from opatlas.planning.shards import Shard
from opatlas.shards import file
from opatlas.shards.inventory import Inventory, by_context
from opatlas.staleness.fingerprint import SHORT


@dataclass(frozen=True)
class ShardState:
    """One shard; `missing` are the cases to measure, `damage` says what is wrong with an existing file.

    `todo` names what is left to measure, by content.
    """

    shard: Shard
    done: bool
    missing: tuple[Key, ...] = ()
    damage: str | None = None
    todo: str = ""

    @property
    def ticket(self) -> Path:
        return self.shard.attempts / f"{self.todo}{SUFFIX}"

    @property
    def receipt(self) -> Path:
        return self.shard.attempts / f"{self.todo}.done.json"

    @property
    def missing_s(self) -> float:
        """Seconds on the device that the missing cases are planned to take."""
        wanted = {key.case for key in self.missing}
        return sum(
            cost
            for case_id, cost in zip(self.shard.ids, self.shard.costs_s, strict=True)
            if case_id in wanted
        )


def _todo(folder: Path, missing: Iterable[Key]) -> str:
    """A name for these keys under which no receipt exists yet.

    A receipt for keys that are missing all the same proves nothing: its journals are gone.
    """
    keys = "".join(f"{key.case}#{key.generation}\n" for key in sorted(missing))
    names = (hashlib.sha256(f"{number}\n{keys}".encode()).hexdigest()[:SHORT] for number in itertools.count())
    return next(name for name in names if not (folder / f"{name}.done.json").exists())


def states(root: Path, shards: Iterable[Shard]) -> list[ShardState]:
    """The state of each shard, in their order; looks at files, writes nothing."""
    shards = list(shards)
    inventories = by_context(root, shards)
    return [_state(root, shard, inventories[shard.context.fingerprint]) for shard in shards]


def _state(root: Path, shard: Shard, inventory: Inventory) -> ShardState:
    path = root / shard.path
    damage = None
    if path.exists():
        try:
            manifest = file.read_manifest(path)
            if manifest["fingerprint"] == shard.fingerprint:
                return ShardState(shard, done=True)
            damage = "its manifest names another fingerprint"
        except UserError as error:
            damage = str(error)
    missing = tuple(inventory.missing(shard))
    todo = _todo(root / shard.attempts, missing) if missing else ""
    return ShardState(shard, False, missing, damage, todo)


def queue_digest(needed: Iterable[ShardState]) -> str:
    """The name of everything that a run has to measure, by content."""
    sha = hashlib.sha256()
    for state in sorted(needed, key=lambda state: str(state.ticket)):
        sha.update(f"{state.ticket}\n".encode())
    return sha.hexdigest()[:SHORT]
