"""Files that lie among the shards and are none of them: never read, but named."""

from __future__ import annotations

from collections.abc import Iterator

from opatlas.checks.evidence import Evidence
from opatlas.checks.finding import ADVISORY, Finding, some


def check(evidence: Evidence) -> Iterator[Finding]:
    found = evidence.record["foreign"]
    if found:
        message = "files among the shards are foreign and were ignored"
        yield Finding("foreign", ADVISORY, "", message, "remove them", "", len(found), some(found))
