"""From a row of a published table to the shard, attempt, job, node, GPU, image and log it came from."""

from __future__ import annotations

import argparse
from pathlib import Path

from opatlas.audit.trace import text, trace
from opatlas.commands.planned import ROOT
from opatlas.config.datasets import RESULTS
from opatlas.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", type=Path, help="results/<dataset>/<table>.parquet")
    parser.add_argument("where", nargs="+", metavar="COLUMN=VALUE", help="columns of the row or rows")


def run(arguments: argparse.Namespace) -> int:
    try:
        dataset = arguments.table.parent.relative_to(RESULTS)
    except ValueError:
        raise UserError(f"{arguments.table}: expected results/<dataset>/<table>.parquet") from None
    wanted = {}
    for condition in arguments.where:
        column, equals, value = str(condition).partition("=")
        if not equals:
            raise UserError(f"{condition}: expected COLUMN=VALUE")
        wanted[column] = value
    print(text(trace(ROOT, str(dataset), arguments.table.stem, wanted)))
    return 0
