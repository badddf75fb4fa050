"""Arguments of commands that plan a dataset first, and the plan itself."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from opatlas.errors import UserError
from opatlas.planning.dataset import PlannedDataset, load
from opatlas.staleness.fingerprint import SHORT

ROOT = Path()


def add_dataset(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", help="backend/version/platform, as in results/<dataset>")
    add_config(parser)


def add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", default="{}", metavar="JSON", help="what stands over config/config.yaml, as a JSON object"
    )


def overrides(arguments: argparse.Namespace) -> dict[str, object]:
    try:
        values = json.loads(arguments.config)
    except ValueError as error:
        raise UserError(f"--config: is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise UserError(f"--config: expected a JSON object, found {values!r}")
    return values


def plan(arguments: argparse.Namespace, only: str | None = None) -> PlannedDataset:
    """The dataset that the arguments name; with `only`, no other op of it."""
    name = str(arguments.dataset).removeprefix("results/").rstrip("/")
    return load(ROOT, name, overrides(arguments), only)


def same(planned: PlannedDataset, what: str, wanted: str, found: str) -> None:
    """UserError when the files have changed since the run was planned."""
    if wanted != found[:SHORT]:
        raise UserError(
            f"{planned.dataset.target}: the {what} is {found[:SHORT]} now and was {wanted} when this run was "
            "planned: something was edited meanwhile; run again"
        )
