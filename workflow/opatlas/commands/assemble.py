"""Makes a shard's file of its outcomes, from journals and from the files of older shards."""

from __future__ import annotations

import argparse

from opatlas.commands.planned import ROOT, add_dataset, plan
from opatlas.errors import UserError
from opatlas.shards.assemble import assemble


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_dataset(parser)
    parser.add_argument("op")
    parser.add_argument("shard", help="<name>-<fingerprint>")


def run(arguments: argparse.Namespace) -> int:
    planned = plan(arguments, only=arguments.op)
    for shard in planned.all_shards:
        if (shard.op, shard.key) == (arguments.op, arguments.shard):
            manifest = assemble(ROOT, shard)
            print(f"{shard.path}: {manifest['rows']} rows, {manifest['failures']} failures")
            return 0
    raise UserError(f"{arguments.op}/{arguments.shard}: no current plan has this shard; run again")
