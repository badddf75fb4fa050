"""Each table is there, whole, and of its columns, types and units."""

from __future__ import annotations

from collections.abc import Iterator

from opatlas.checks.evidence import Evidence
from opatlas.checks.finding import BLOCKING, MERGE_AGAIN, Finding, some


def check(evidence: Evidence) -> Iterator[Finding]:
    for name, wrong in evidence.broken.items():
        yield Finding(
            "schema",
            BLOCKING,
            name,
            f"{name}.parquet: {wrong[0]}",
            MERGE_AGAIN,
            count=len(wrong),
            examples=some(wrong),
        )
