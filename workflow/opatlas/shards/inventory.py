"""What has been measured already: outcomes in journals and in shard files, by row identity.

A row is the same row when its context and its key (case, generation) are the same, whichever shard
it was measured in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path

from opatlas.config.datasets import RESULTS
from opatlas.errors import UserError
from opatlas.harness import journal
from opatlas.harness.journal import Journals
from opatlas.harness.ticket import Key
from opatlas.planning.shards import Shard
from opatlas.shards import file


class Inventory:
    """Every outcome that exists under `root` for one op's rows in one context."""

    def __init__(self, root: Path, base: str, op: str, context: str) -> None:
        self.root = root
        self.context = context
        self._shards = root / RESULTS / "shards" / base / op
        self._attempts = root / RESULTS / "attempts" / base / op
        self._journals: dict[Path, Journals] = {}

    @classmethod
    def of(cls, root: Path, shard: Shard) -> Inventory:
        return cls(root, shard.dataset.base, shard.op, shard.context.fingerprint)

    def missing(self, shard: Shard) -> list[Key]:
        """The keys of a shard without an outcome anywhere, in the order of its cases."""
        own = self.journals(self.root / shard.attempts).outcomes
        left = [key for key in shard.keys if key not in own and key not in self.in_files]
        return [key for key in left if key not in self.in_other_journals] if left else []

    def journals(self, folder: Path) -> Journals:
        """The journals of an attempts folder, records of this context only."""
        if folder not in self._journals:
            self._journals[folder] = journal.read(folder, self.context) if folder.is_dir() else Journals()
        return self._journals[folder]

    @cached_property
    def in_files(self) -> Mapping[Key, Path]:
        """Key -> the whole shard file of this context that holds its outcome."""
        found: dict[Key, Path] = {}
        for path in file.shard_files(self._shards):
            try:
                if file.read_manifest(path)["context_fingerprint"] == self.context:
                    found.update(dict.fromkeys(file.read_keys(path), path))
            except UserError:
                # A damaged file holds nothing that can be trusted; the plan names it where it matters.
                continue
        return found

    @cached_property
    def in_other_journals(self) -> Mapping[Key, Path]:
        """Key -> the attempts folder whose journals hold its outcome."""
        found: dict[Key, Path] = {}
        for folder in sorted(self._attempts.glob("*/")):
            found.update(dict.fromkeys(self.journals(folder).outcomes, folder))
        return found

    def sources(self, shard: Shard) -> dict[Path, list[Key]]:
        """Where each outcome of a shard comes from: attempts folders and shard files.

        UserError when one is missing.
        """
        own = self.root / shard.attempts
        places: Mapping[Key, Path] = dict.fromkeys(self.journals(own).outcomes, own)
        sources: dict[Path, list[Key]] = {}
        lacking = []
        for key in shard.keys:
            place = places.get(key) or self.in_files.get(key) or self.in_other_journals.get(key)
            if place is None:
                lacking.append(key)
            else:
                sources.setdefault(place, []).append(key)
        if lacking:
            raise UserError(
                f"{shard.path}: {len(lacking)} of {len(shard.keys)} cases have neither row nor failure, "
                f"the first is {lacking[0].case}; run again to measure them"
            )
        return sources


def by_context(root: Path, shards: Iterable[Shard]) -> dict[str, Inventory]:
    """Context fingerprint -> inventory, for the contexts of these shards."""
    found: dict[str, Inventory] = {}
    for shard in shards:
        if shard.context.fingerprint not in found:
            found[shard.context.fingerprint] = Inventory.of(root, shard)
    return found
