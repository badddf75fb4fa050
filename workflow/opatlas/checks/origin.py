"""Every row and failure comes from a shard of this plan, as it is planned today."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.compute as pc

from opatlas.checks.evidence import Evidence
from opatlas.checks.finding import BLOCKING, MERGE_AGAIN, Finding, some
from opatlas.tables.merge import FAILURES

NAME = "origin"


def check(evidence: Evidence) -> Iterator[Finding]:
    planned = {shard.key: shard.fingerprint for shard in evidence.planned.shards}
    for name, table in {**evidence.tables, FAILURES: evidence.failures}.items():
        for column, known in (("shard", planned), ("attempt", evidence.record["attempts"])):
            strange = [value for value in pc.unique(table[column]).to_pylist() if value not in known]
            if strange:
                message = f"rows are of a {column} that this plan does not have"
                examples = some(sorted(strange))
                yield Finding(NAME, BLOCKING, name, message, MERGE_AGAIN, column, len(strange), examples)
    merged = {entry["fingerprint"] for entry in evidence.record["shards"]}
    if gone := sorted(key for key, fingerprint in planned.items() if fingerprint not in merged):
        message = "shards of this plan are not among those that were merged"
        yield Finding(NAME, BLOCKING, "", message, MERGE_AGAIN, "shard", len(gone), some(gone))
