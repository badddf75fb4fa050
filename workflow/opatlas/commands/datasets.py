"""Lists every dataset that can be asked for: pins times platforms."""

from __future__ import annotations

import argparse

from opatlas.commands.planned import ROOT, add_config, overrides
from opatlas.config import datasets


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config(parser)


def run(arguments: argparse.Namespace) -> int:
    config = datasets.load(ROOT, overrides(arguments))
    print(
        "Ask for a dataset by its path: snakemake -n results/<backend>/<version>/<platform> shows its plan,"
    )
    print("and without -n measures what is missing and publishes it. Known datasets:")
    for dataset in config.datasets():
        state = "published" if (ROOT / dataset.target / "provenance.json").exists() else ""
        print(f"  {dataset.target}  {state}".rstrip())
    return 0
