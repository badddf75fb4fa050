"""Says which entries of the skip list are no longer true, by sampled cases that they keep out."""

from __future__ import annotations

import argparse
import json

from opatlas.audit.skips import NO_LONGER, judge
from opatlas.catalogue import load as catalogue
from opatlas.commands.planned import ROOT, add_dataset, plan
from opatlas.config.datasets import RESULTS
from opatlas.files import write_atomically
from opatlas.planning.skipped import CASES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_dataset(parser)


def run(arguments: argparse.Namespace) -> int:
    sampled = plan(arguments)
    entries = judge(ROOT, catalogue.load(ROOT), sampled)
    for entry in entries:
        print(f"{entry.entry} {entry.op}: {entry.verdict}: {entry.because} ({entry.reason})")
    document = {
        "dataset": sampled.dataset.base,
        "seed": sampled.config.settings.seed,
        "cases_per_entry": CASES,
        "entries": [vars(entry) for entry in entries],
    }
    path = ROOT / RESULTS / f"{sampled.dataset.name}.json"
    write_atomically(path, json.dumps(document, indent=1).encode() + b"\n")
    wrong = sum(entry.verdict == NO_LONGER for entry in entries)
    print(f"{path}: {wrong} of {len(entries)} entries, counted by op, are no longer true")
    return 0
