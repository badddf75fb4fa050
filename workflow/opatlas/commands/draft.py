"""Drafts a model's entry for cases/models from its config.json: dimensions only, nothing guessed."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from opatlas.catalogue.draft import draft
from opatlas.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", type=Path, help="the checkpoint's config.json")
    parser.add_argument(
        "--name", required=True, help="the checkpoint's path on the hub, as in Qwen/Qwen3-32B"
    )


def run(arguments: argparse.Namespace) -> int:
    try:
        config = json.loads(arguments.config.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{arguments.config}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"{arguments.config}: is not JSON: {error}") from None
    if not isinstance(config, dict):
        raise UserError(f"{arguments.config}: expected a mapping, as in a model's config.json")
    print(draft(arguments.name, config), end="")
    return 0
