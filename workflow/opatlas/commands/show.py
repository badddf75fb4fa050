"""Says what a published dataset holds and where to look."""

from __future__ import annotations

import argparse
import json

from opatlas.commands.planned import ROOT
from opatlas.config.datasets import RESULTS
from opatlas.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", help="backend/version/platform, with @subset behind it")


def run(arguments: argparse.Namespace) -> int:
    import pyarrow.parquet as pq

    folder = ROOT / RESULTS / str(arguments.dataset).removeprefix("results/").rstrip("/")
    if not (folder / "provenance.json").exists():
        raise UserError(f"{folder}: no dataset is published there; snakemake {folder} makes it")
    tables = sorted(folder.glob("*_perf.parquet"))
    rows = {path: pq.read_metadata(path).num_rows for path in tables}
    failures = pq.read_metadata(folder / "failures.parquet").num_rows
    checks = json.loads((folder / "checks.json").read_text(encoding="utf-8"))
    print(f"Published {folder}: {sum(rows.values())} rows in {len(tables)} tables, {failures} failures")
    for path, count in rows.items():
        print(f"  {path}  {count} rows")
    print(f"  {folder / 'report.html'}  what was measured, how, and what the checks found")
    blocking = sum(finding["severity"] == "blocking" for finding in checks["findings"])
    advisory = len(checks["findings"]) - blocking
    print(f"  {folder / 'checks.json'}  {blocking} blocking and {advisory} advisory findings")
    print(f"  {folder / 'provenance.json'}  where every number comes from")
    return 0
