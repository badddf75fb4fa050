"""Re-derives every hash of a published dataset and says what this tree could no longer make again.

What is found is written beside the dataset; damaged shard files are moved away, so that the next run
makes them again, and only them.
"""

from __future__ import annotations

import argparse
import json

from opatlas.audit.audit import audit_dataset, quarantine_damaged
from opatlas.commands.planned import ROOT, add_dataset, plan
from opatlas.config.datasets import RESULTS
from opatlas.errors import UserError
from opatlas.files import write_atomically
from opatlas.planning.dataset import PlannedDataset


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_dataset(parser)
    parser.add_argument("--keep", action="store_true", help="leave damaged shard files where they are")


def run(arguments: argparse.Namespace) -> int:
    name = str(arguments.dataset).removeprefix("results/").rstrip("/")
    planned: PlannedDataset | None = None
    try:
        planned = plan(arguments)
    except UserError as error:
        print(f"this tree no longer plans results/{name}: {error}")
    whole, findings = audit_dataset(planned, ROOT, name)
    for finding in findings:
        print(finding)
    if planned and not arguments.keep:
        for path in quarantine_damaged(ROOT, planned):
            print(f"moved away: {path}; snakemake results/{name} makes its shard again")
    document = {"dataset": name, "whole": whole, "findings": [vars(finding) for finding in findings]}
    path = ROOT / RESULTS / f"{name}.audit.json"
    write_atomically(path, json.dumps(document, indent=1).encode() + b"\n")
    print(f"{path}: {'nothing is damaged' if whole else 'damaged'}, {len(findings)} findings")
    return 0 if whole else 1
