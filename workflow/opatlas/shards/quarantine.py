"""Moves a damaged shard file out of the way, so that its shard is made again."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from opatlas.config.datasets import RESULTS
from opatlas.errors import UserError
from opatlas.files import write_atomically
from opatlas.planning.shards import Shard
from opatlas.shards import file
from opatlas.staleness.fingerprint import SHORT


def note_path(root: Path, shard: Shard) -> Path:
    """The note that says that this very file was moved; named by the file's content."""
    content = (root / shard.path).read_bytes()
    digest = hashlib.sha256(content).hexdigest()[:SHORT]
    return RESULTS / "quarantine" / shard.dataset.base / shard.op / f"{shard.key}-{digest}.json"


def quarantine(root: Path, path: Path, note: Path) -> None:
    """Moves a shard's file and its failures beside `note`, then writes the note.

    UserError when the file is not the one that the note is named for, or is whole after all.
    """
    digest = note.stem.rpartition("-")[2]
    content = (root / path).read_bytes()
    if not hashlib.sha256(content).hexdigest().startswith(digest):
        raise UserError(f"{path}: has changed since it was found damaged; run again")
    if not (reason := damage(root / path)):
        raise UserError(f"{path}: is whole after all; run again")
    folder = (root / note).parent
    folder.mkdir(parents=True, exist_ok=True)
    moved = []
    for victim in (root / path, file.failures_path(root / path)):
        if victim.exists():
            victim.rename(folder / f"{note.stem}-{victim.name}")
            moved.append(str(victim.relative_to(root)))
    document = {"moved": moved, "reason": reason}
    write_atomically(root / note, json.dumps(document, indent=1).encode() + b"\n")


def damage(path: Path) -> str:
    """What is wrong with a shard file, in full; empty when nothing is."""
    try:
        file.verify(path)
    except UserError as error:
        return str(error)
    return ""
