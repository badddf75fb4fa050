"""Lists what to check again when a backend's pin is raised: skips, dispatches, guarded limits."""

from __future__ import annotations

import argparse

from opatlas.catalogue import load
from opatlas.catalogue.recheck import recheck
from opatlas.commands.planned import ROOT
from opatlas.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("backend")


def run(arguments: argparse.Namespace) -> int:
    cases = load.load(ROOT)
    if arguments.backend not in cases.precisions:
        raise UserError(f"there is no backend {arguments.backend!r}; known: {', '.join(cases.precisions)}")
    for line in recheck(ROOT, cases, arguments.backend):
        print(line)
    return 0
