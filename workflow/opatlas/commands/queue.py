"""Writes the tickets of every stale shard of a dataset, then a list of them."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from opatlas.commands.planned import ROOT, add_dataset, plan, same
from opatlas.files import write_atomically
from opatlas.shards.queue import write_tickets
from opatlas.shards.state import queue_digest, states


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_dataset(parser)
    parser.add_argument("output", type=Path, help="the list to write, named by its content")


def run(arguments: argparse.Namespace) -> int:
    planned = plan(arguments)
    needed = [state for state in states(ROOT, planned.all_shards) if state.missing]
    same(planned, "list of what is missing", arguments.output.stem, queue_digest(needed))
    count = write_tickets(ROOT, planned, needed)
    tickets = [str(state.ticket) for state in needed]
    write_atomically(ROOT / arguments.output, json.dumps(tickets, indent=1).encode() + b"\n")
    print(f"{count} tickets written")
    return 0
