"""`python -m opatlas COMMAND`: what people ask beside datasets, and what the rules run."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from opatlas.commands import COMMANDS
from opatlas.errors import UserError


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; a user's mistake is one message on stderr and exit status 1."""
    parser = argparse.ArgumentParser(prog="python -m opatlas", description=__doc__)
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, about in COMMANDS.items():
        module = importlib.import_module(f"opatlas.commands.{name.replace('-', '_')}")
        module.add_arguments(subparsers.add_parser(name, help=about, description=module.__doc__))
    chosen = parser.parse_args(arguments)
    module = importlib.import_module(f"opatlas.commands.{chosen.command.replace('-', '_')}")
    try:
        return int(module.run(chosen))
    except UserError as error:
        print(f"opatlas: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of a pipe went away (`| head`); nothing more can be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


if __name__ == "__main__":
    sys.exit(main())
