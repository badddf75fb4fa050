"""`plan diff A B DATASET`: what a change of the case files adds to a dataset's plan and removes from it.

A and B are git revisions, or folders that hold cases/ and config/ (`.` is the working tree). Without
DATASET, A and B are themselves datasets of the working tree.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from opatlas.commands.planned import ROOT
from opatlas.errors import UserError
from opatlas.planning.dataset import load
from opatlas.planning.diff import OpDiff, compare
from opatlas.planning.plan import Plan
from opatlas.planning.summary import duration

SHOWN = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=["diff"])
    parser.add_argument("before", help="a git revision, a folder, or a dataset")
    parser.add_argument("after", help="likewise; . is the working tree")
    parser.add_argument("dataset", nargs="?", help="backend/version/platform")
    parser.add_argument("--cases", action="store_true", help="name every case, not only the first ones")


def run(arguments: argparse.Namespace) -> int:
    if arguments.dataset:
        name = _name(arguments.dataset)
        with _tree(arguments.before) as one, _tree(arguments.after) as two:
            diffs = compare(_plan(one, name), _plan(two, name))
    else:
        diffs = compare(_plan(ROOT, _name(arguments.before)), _plan(ROOT, _name(arguments.after)))
    for diff in diffs:
        if diff.added or diff.removed or diff.changed:
            print("\n".join(lines(diff, arguments.cases)))
    print(total(diffs))
    return 0


def lines(diff: OpDiff, every: bool) -> Iterator[str]:
    """One op's differences."""
    yield (
        f"{diff.op}: {diff.before} -> {diff.after} cases, {len(diff.added)} added "
        f"({duration(diff.added_s)}), {len(diff.removed)} removed ({duration(diff.removed_s)}), "
        f"{len(diff.changed)} changed"
    )
    shown = None if every else SHOWN
    marked = [f"  + {case}" for case in diff.added] + [f"  - {case}" for case in diff.removed]
    marked += [f"  ~ {old} -> {new}" for old, new in diff.changed]
    yield from marked[:shown]
    if shown and len(marked) > shown:
        yield f"  and {len(marked) - shown} more (--cases names them)"


def total(diffs: Sequence[OpDiff]) -> str:
    """The sums over all ops."""
    added = sum(len(diff.added) for diff in diffs)
    removed = sum(len(diff.removed) for diff in diffs)
    changed = sum(len(diff.changed) for diff in diffs)
    time = duration(sum(diff.added_s for diff in diffs))
    return f"{added} cases added (about {time} of device time), {removed} removed, {changed} changed"


def _name(text: str) -> str:
    return text.removeprefix("results/").rstrip("/")


def _plan(root: Path, name: str) -> Plan:
    return load(root, name).plan


@contextmanager
def _tree(revision: str) -> Iterator[Path]:
    """A folder with the cases/ and config/ of a revision."""
    if Path(revision).is_dir():
        yield Path(revision)
        return
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "archive", revision, "--", "cases", "config"], capture_output=True, check=False
        )
        if archive.returncode:
            raise UserError(f"{revision}: {archive.stderr.decode(errors='replace').strip()}")
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        yield Path(folder)
