"""Moves a damaged shard file away, so that its shard is made again."""

from __future__ import annotations

import argparse
from pathlib import Path

from opatlas.commands.planned import ROOT
from opatlas.shards.quarantine import quarantine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shard", type=Path, help="the shard's file")
    parser.add_argument("note", type=Path, help="the note to write, named by the file's content")


def run(arguments: argparse.Namespace) -> int:
    quarantine(ROOT, arguments.shard, arguments.note)
    return 0
