"""Removes files under results/ that no dataset named needs; by default only says which.

Name every dataset (and subset, with its --config) that is to stay as it is. Files of the current plans
of the named datasets stay; everything older of the same (backend, version, platform) goes.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from opatlas import lock
from opatlas.commands.planned import ROOT, add_config, overrides
from opatlas.config.datasets import RESULTS
from opatlas.errors import UserError
from opatlas.planning.dataset import PlannedDataset, load
from opatlas.shards import file
from opatlas.shards.state import states
from opatlas.staleness.fingerprint import SHORT


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("datasets", nargs="+", help="datasets whose current plan stays")
    parser.add_argument("--delete", action="store_true", help="remove the files, not only list them")
    add_config(parser)


def run(arguments: argparse.Namespace) -> int:
    names = [str(name).removeprefix("results/").rstrip("/") for name in arguments.datasets]
    planned = [load(ROOT, name, overrides(arguments)) for name in names]
    for one in planned:
        if not all(state.done for state in states(ROOT, one.all_shards)):
            raise UserError(
                f"{one.dataset.target}: is not complete, and may still need rows of older files: "
                f"run snakemake {one.dataset.target} first"
            )
    held = lock.take(ROOT / RESULTS) if arguments.delete else None
    try:
        victims = list(unneeded(planned))
        size = 0
        for path in victims:
            size += _size(path)
            print(path)
            if arguments.delete:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    finally:
        if held:
            held.release()
    done = "removed" if arguments.delete else "would be removed (add --delete)"
    print(f"{len(victims)} files and folders, {size / 1e6:.1f} MB {done}")
    return 0


def unneeded(planned: Iterable[PlannedDataset]) -> Iterator[Path]:
    """Shard files, attempts, tables and older datasets that none of these plans names."""
    planned = list(planned)
    needed: set[Path] = set()
    bases: set[str] = set()
    targets: dict[str, str] = {}
    for one in planned:
        bases.add(one.dataset.base)
        targets[one.dataset.name] = one.fingerprint[:SHORT]
        for shard in one.all_shards:
            needed |= {shard.path, file.failures_path(shard.path), shard.attempts}
    for base in sorted(bases):
        for kind in ("shards", "attempts"):
            folder = ROOT / RESULTS / kind / base
            yield from (path for path in sorted(folder.glob("*/*")) if path not in needed)
        for folder in (
            ROOT / RESULTS / "quarantine" / base,
            ROOT / RESULTS / "queues" / base,
            ROOT / RESULTS / "interface" / base,
        ):
            yield from sorted(folder.glob("*"))
    for name, fingerprint in sorted(targets.items()):
        folder = ROOT / RESULTS / "tables" / name
        yield from (path for path in sorted(folder.glob("*")) if path.name != fingerprint)
        published = ROOT / RESULTS / ".datasets" / name
        current = (ROOT / RESULTS / name).resolve()
        siblings = sorted(published.parent.glob(f"{published.name}-{'[0-9a-f]' * SHORT}*"))
        yield from (path for path in siblings if path.resolve() != current)


def _size(path: Path) -> int:
    if path.is_dir():
        return sum(inner.stat().st_size for inner in path.rglob("*") if inner.is_file())
    return path.stat().st_size
