"""Makes a dataset's tables of its shards."""

from __future__ import annotations

import argparse

from opatlas.commands.planned import ROOT, add_dataset, plan, same
from opatlas.tables.merge import merge_dataset, tables_folder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_dataset(parser)
    parser.add_argument("fingerprint")


def run(arguments: argparse.Namespace) -> int:
    planned = plan(arguments)
    same(planned, "dataset's fingerprint", arguments.fingerprint, planned.fingerprint)
    record = merge_dataset(planned, ROOT / tables_folder(planned), ROOT)
    for foreign in record["foreign"]:
        print(f"left out: {foreign}")
    return 0
