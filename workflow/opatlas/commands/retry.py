"""Asks for chosen failures or rows of a dataset to be measured again at the next run.

Their present values are kept in their files but never used again.
"""

from __future__ import annotations

import argparse
import fnmatch
from collections.abc import Iterator, Mapping
from typing import Any

from opatlas.commands.planned import ROOT, add_dataset, plan
from opatlas.errors import UserError
from opatlas.planning import retries
from opatlas.planning.dataset import PlannedDataset
from opatlas.shards import file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_dataset(parser)
    parser.add_argument("--class", dest="kind", metavar="CLASS", help="failures of this class, or 'any'")
    parser.add_argument("--node", help="everything measured on this node")
    parser.add_argument("--case", help="cases whose id matches this pattern, as in 'gemm/*/m=1/*'")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be measured again")


def run(arguments: argparse.Namespace) -> int:
    if not (arguments.kind or arguments.node or arguments.case):
        raise UserError("retry: say what to measure again: --class, --node or --case")
    planned = plan(arguments)
    chosen = sorted({outcome["case_id"] for outcome in outcomes(planned) if wanted(arguments, outcome)})
    if not chosen:
        raise UserError(f"{planned.dataset.target}: nothing that was measured matches")
    for case_id in chosen[:10]:
        print(f"  {case_id}")
    if len(chosen) > 10:
        print(f"  and {len(chosen) - 10} more")
    if arguments.dry_run:
        print(f"{len(chosen)} cases would be measured again")
        return 0
    retries.ask(ROOT, planned.dataset, chosen)
    print(f"{len(chosen)} cases will be measured again: snakemake {planned.dataset.target}")
    return 0


def outcomes(planned: PlannedDataset) -> Iterator[Mapping[str, Any]]:
    """Every row and failure in the shard files of today's plan; rows have no `class`."""
    for shard in planned.shards:
        path = ROOT / shard.path
        if path.exists():
            whole = file.read(path)
            for table, names in (
                (whole.rows, ["case_id", "node"]),
                (whole.failures, ["case_id", "node", "class"]),
            ):
                yield from table.select(names).to_pylist()


def wanted(arguments: argparse.Namespace, outcome: Mapping[str, Any]) -> bool:
    kind = outcome.get("class")
    if arguments.kind and not (kind and arguments.kind in (kind, "any")):
        return False
    if arguments.node and outcome["node"] != arguments.node:
        return False
    return not arguments.case or fnmatch.fnmatchcase(outcome["case_id"], arguments.case)
