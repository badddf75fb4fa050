"""Each table is there, whole, and of its columns, types and units."""

from __future__ import annotations

from collections.abc import Iterator

from opatlas.checks.evidence import Evidence
from opatlas.checks.finding import BLOCKING, Finding, some


def check(evidence: Evidence) -> Iterator[Finding]:
    for name, wrong in evidence.broken.items():
        yield Finding(
            "schema",
            BLOCKING,
            name,
            f"{name}.parquet: {wrong[0]}",
            "remove the dataset's folder under results/tables and run again",
            count=len(wrong),
            examples=some(wrong),
        )
