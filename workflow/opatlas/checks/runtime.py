"""Rows ran where the pins and the platform say: framework version, image digest, GPU product."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from packaging.version import InvalidVersion, Version

from opatlas.checks.evidence import Evidence, OpRows
from opatlas.checks.finding import BLOCKING, Finding, some

NAME = "runtime"
ADVICE = "remove the shards that hold them and run again"


def check(evidence: Evidence) -> Iterator[Finding]:
    dataset = evidence.planned.dataset
    attempts = evidence.record["attempts"]
    for own in evidence.ops:
        op = own.op.op.name
        exact = {
            name: str((attempts[name].get("versions") or {}).get("framework"))
            for shard in evidence.record["shards"]
            for name in shard["attempts"]
            if shard["op"] == op
        }
        wrong = [
            f"{name}: {version}" for name, version in exact.items() if public(version) != dataset.version
        ]
        if wrong:
            message = f"{op} ran another version than the pinned {dataset.version}"
            yield Finding(NAME, BLOCKING, own.table, message, ADVICE, "attempt", len(wrong), some(wrong))
        elif len(set(exact.values())) > 1:
            message = f"{op} mixes builds of one version"
            several = sorted(set(exact.values()))
            yield Finding(NAME, BLOCKING, own.table, message, ADVICE, "attempt", len(several), some(several))
        yield from _differing(own, "image_digest", own.op.runtime.digest)
        if dataset.platform.gpu:
            yield from _differing(own, "device", dataset.platform.gpu)


def public(version: str) -> str | None:
    """The version without its local suffix; None where it is no version."""
    try:
        return Version(version).public
    except InvalidVersion:
        return None


def _differing(own: OpRows, column: str, wanted: Any) -> Iterator[Finding]:
    if column not in own.rows.column_names:
        return
    codes, values = own.codes(column)
    strange = [code for code, value in enumerate(values) if value != wanted]
    if strange:
        found = ", ".join(sorted(str(values[code]) for code in strange))
        message = f"{column} is {found} and must be {wanted}"
        cases = own.ids(np.isin(codes, strange))
        yield Finding(NAME, BLOCKING, own.table, message, ADVICE, column, len(cases), some(cases))
