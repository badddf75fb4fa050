"""`python -m opatlas COMMAND`: what people ask beside datasets, and what the rules run."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from opatlas.commands import COMMANDS
from opatlas.errors import UserError


def main(arguments: Sequence[str]) -> int:
    """Runs one command; a user's mistake is one message on stderr and exit status 1."""
    command, *rest = arguments or ["--help"]
    if command not in COMMANDS:
        asked = command in ("-h", "--help")
        print(usage(), file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    module = importlib.import_module(f"opatlas.commands.{command.replace('-', '_')}")
    parser = argparse.ArgumentParser(prog=f"python -m opatlas {command}", description=module.__doc__)
    module.add_arguments(parser)
    try:
        status = int(module.run(parser.parse_args(rest)))
        sys.stdout.flush()
        return status
    except UserError as error:
        print(f"opatlas: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of a pipe went away (`| head`); nothing more can be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def usage() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {about}" for name, about in COMMANDS.items()]
    return "\n".join(["usage: python -m opatlas COMMAND ...", "", *lines])


if __name__ == "__main__":
    ended = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # Without the interpreter's teardown, in which Arrow's threads that are just starting abort the process.
    os._exit(ended)
