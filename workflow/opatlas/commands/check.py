"""Checks a dataset's tables and says what was found."""

from __future__ import annotations

import argparse

from opatlas.checks.run import check_dataset
from opatlas.commands.planned import ROOT, add_dataset, plan, same
from opatlas.tables.merge import tables_folder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_dataset(parser)
    parser.add_argument("fingerprint")


def run(arguments: argparse.Namespace) -> int:
    planned = plan(arguments)
    same(planned, "dataset's fingerprint", arguments.fingerprint, planned.fingerprint)
    print(check_dataset(planned, ROOT / tables_folder(planned)).text())
    return 0
