"""Asks for chosen failures or rows of a dataset to be measured again at the next run.

Their present values are kept in their files but never used again.
"""

from __future__ import annotations

import argparse
import fnmatch
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from opatlas.commands.planned import ROOT, add_dataset, plan
from opatlas.errors import UserError
from opatlas.planning import retries
from opatlas.planning.dataset import PlannedDataset
from opatlas.shards import file
from opatlas.shards.file import Manifest, ShardFile

SHOWN = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_dataset(parser)
    parser.add_argument("--class", dest="kind", metavar="CLASS", help="failures of this class, or 'any'")
    parser.add_argument("--node", help="everything measured on this node")
    parser.add_argument("--gpu", metavar="UUID", help="everything measured on this GPU")
    parser.add_argument("--case", help="cases whose id matches this pattern, as in 'gemm/*/m=1/*'")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be measured again")


def run(arguments: argparse.Namespace) -> int:
    if not (arguments.kind or arguments.node or arguments.gpu or arguments.case):
        raise UserError("retry: say what to measure again: --class, --node, --gpu or --case")
    planned = plan(arguments)
    nodes: set[str] = set()
    chosen: set[str] = set()
    for shard in shard_files(planned):
        nodes |= {str(attempt["node"]) for attempt in shard.manifest["attempts"]}
        chosen.update(matching(shard, arguments))
    if not chosen:
        known = f"; nodes are {', '.join(sorted(nodes))}" if arguments.node and nodes else ""
        raise UserError(f"{planned.dataset.target}: nothing that was measured matches{known}")
    ordered = sorted(chosen)
    for case_id in ordered[:SHOWN]:
        print(f"  {case_id}")
    if len(ordered) > SHOWN:
        print(f"  and {len(ordered) - SHOWN} more")
    if arguments.dry_run:
        print(f"{len(ordered)} cases would be measured again")
        return 0
    retries.ask(ROOT, planned.dataset, ordered)
    print(f"{len(ordered)} cases will be measured again: snakemake {planned.dataset.target}")
    return 0


def shard_files(planned: PlannedDataset) -> Iterator[ShardFile]:
    """The shard files of today's plan that exist."""
    for shard in planned.shards:
        if (ROOT / shard.path).exists():
            yield file.read(ROOT / shard.path)


def matching(shard: ShardFile, arguments: argparse.Namespace) -> Iterator[str]:
    """The ids of cases whose row or failure in a shard is meant."""
    attempts = pa.array(_attempts(shard.manifest, arguments.node, arguments.gpu), pa.string())
    for table in (shard.rows, shard.failures):
        if arguments.kind and table is shard.rows:
            continue
        chosen = table.filter(pc.is_in(table["attempt"], attempts))
        if arguments.kind and arguments.kind != "any":
            chosen = chosen.filter(pc.equal(chosen["class"], arguments.kind))
        for case_id in chosen["case_id"].unique().to_pylist():
            if not arguments.case or fnmatch.fnmatchcase(case_id, arguments.case):
                yield case_id


def _attempts(manifest: Manifest, node: str | None, gpu: str | None) -> list[str]:
    """The attempts of a shard that ran there."""
    return [
        attempt["id"]
        for attempt in manifest["attempts"]
        if node in (None, "", attempt["node"]) and gpu in (None, "", (attempt["facts"] or {}).get("uuid"))
    ]
