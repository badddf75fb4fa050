"""Compares a dataset with a baseline: a published dataset, or a folder of tables with the same columns.

Says per op, precision and size whether latencies are the same, different, or too uncertain to say.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from opatlas.baseline import report, side
from opatlas.baseline.compare import compare
from opatlas.commands.planned import ROOT, add_config, overrides
from opatlas.config import datasets
from opatlas.errors import UserError
from opatlas.files import write_atomically


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", help="a published dataset, or a folder of tables")
    parser.add_argument("baseline", nargs="?", help="likewise; config's baseline where it is left out")
    parser.add_argument("--report", metavar="NAME", help="write NAME.json and NAME.html too")
    add_config(parser)


def run(arguments: argparse.Namespace) -> int:
    asked = arguments.baseline or datasets.load(ROOT, overrides(arguments)).settings.baseline
    if not asked:
        raise UserError("compare: name a baseline, or set `baseline` in config/config.yaml")
    new, old = side.find(ROOT, arguments.dataset), side.find(ROOT, asked)
    for folder in new.folders:
        old.refuse(folder)
    comparison = compare(new, old)
    print(report.text(comparison))
    if arguments.report:
        document = json.dumps(report.document(comparison), indent=1) + "\n"
        for suffix, content in ((".json", document), (".html", report.page(comparison))):
            path = Path(f"{arguments.report}{suffix}")
            write_atomically(path, content.encode())
            print(f"  {path}")
    return 0
