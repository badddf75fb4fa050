"""Shows who holds the lock of this working tree, and the progress of every shard being measured."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from opatlas import lock
from opatlas.commands.planned import ROOT
from opatlas.config.datasets import RESULTS
from opatlas.harness.journal import Progress, progress
from opatlas.harness.ticket import SUFFIX


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", nargs="?", default="", help="only shards whose path begins with this")
    parser.add_argument("--all", action="store_true", help="finished shards too")


def run(arguments: argparse.Namespace) -> int:
    print(lock_line(ROOT / RESULTS))
    attempts = ROOT / RESULTS / "attempts"
    wanted = str(arguments.dataset).removeprefix("results/").split("@")[0].rstrip("/")
    folders = sorted({path.parent for path in attempts.glob(f"**/*{SUFFIX}")})
    shown = 0
    for folder in folders:
        name = str(folder.relative_to(attempts))
        if not name.startswith(wanted):
            continue
        state = progress(folder)
        if state.finished and not arguments.all:
            continue
        print(shard_line(name, state))
        shown += 1
    if not shown:
        print("No shard is being measured." if not arguments.all else "No shard was measured here.")
    return 0


def lock_line(results: Path) -> str:
    """Who holds the lock, whether it lives, and what to do."""
    holder = lock.read(results)
    if holder is None:
        return "No run holds the lock."
    if holder.is_dead:
        return (
            f"The lock was left by {holder}, which is dead. Run snakemake again: it takes the lock over and "
            "goes on with what is missing."
        )
    if holder.is_here:
        return f"The lock is held by {holder}, which is running."
    return f"The lock is held by {holder}; whether it lives can only be told there."


def shard_line(name: str, state: Progress) -> str:
    failures = ", ".join(f"{count} {kind}" for kind, count in sorted(state.failures.items()))
    parts = [f"{state.rows} rows", *([failures] if failures else []), f"of {state.planned} cases"]
    parts.append(f"{state.attempts} attempt{'s' if state.attempts != 1 else ''}")
    if state.node:
        parts.append(f"on {state.node}")
    if state.updated is not None:
        parts.append(f"last record {max(0.0, time.time() - state.updated):.0f} s ago")
    if state.running:
        parts.append(f"running {state.running[0]}")
    return "\n".join([f"{name}: {', '.join(parts)}", *(f"  {problem}" for problem in state.problems)])
