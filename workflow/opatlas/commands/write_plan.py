"""Writes the plan tables of a dataset."""

from __future__ import annotations

import argparse

from opatlas.commands.planned import ROOT, add_dataset, plan, same
from opatlas.planning.tables import write_plan


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_dataset(parser)
    parser.add_argument("fingerprint")


def run(arguments: argparse.Namespace) -> int:
    planned = plan(arguments)
    same(planned, "plan's fingerprint", arguments.fingerprint, planned.plan_fingerprint)
    print(write_plan(ROOT, planned))
    return 0
