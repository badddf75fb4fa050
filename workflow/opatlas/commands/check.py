"""Checks a published dataset, whatever was found when it was published, and says what is found now."""

from __future__ import annotations

import argparse

from opatlas.audit.published import open_dataset
from opatlas.checks.evidence import load_published
from opatlas.checks.report import write
from opatlas.checks.run import run as run_checks
from opatlas.commands.planned import ROOT, add_dataset, plan
from opatlas.config.datasets import RESULTS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_dataset(parser)


def run(arguments: argparse.Namespace) -> int:
    planned = plan(arguments)
    name = planned.dataset.name
    published = open_dataset(ROOT, name)
    report = run_checks(load_published(planned, ROOT, published.provenance), str(published.target))
    write(report, planned.fingerprint, ROOT / RESULTS / f"{name}.checks.json")
    print(report.text())
    return 1 if report.blocking else 0
