"""Checks a dataset's tables and publishes them: builds its directory and swaps it in with one rename."""

from __future__ import annotations

import argparse

from opatlas.checks.run import check_dataset
from opatlas.commands.planned import ROOT, add_dataset, plan, same
from opatlas.publishing.publish import publish_dataset
from opatlas.tables.merge import tables_folder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_dataset(parser)
    parser.add_argument("fingerprint")


def run(arguments: argparse.Namespace) -> int:
    planned = plan(arguments)
    same(planned, "dataset's fingerprint", arguments.fingerprint, planned.fingerprint)
    folder = ROOT / tables_folder(planned)
    # The run that asked for it prints what is found at its end.
    check_dataset(planned, folder)
    print(publish_dataset(planned, folder, ROOT))
    return 0
