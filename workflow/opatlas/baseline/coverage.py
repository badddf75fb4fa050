"""What one side alone has: keys of tables, and groups of failed cases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from opatlas.baseline.matching import Label, Matched
from opatlas.baseline.side import Side

EXAMPLES = 5
GROUP = ("table", "op", "group", "class")

Record = dict[str, Any]


def keys(matched: Matched) -> Iterator[Record]:
    """Keys gained and lost, with examples, for each op and precision that gained or lost any."""
    pairs = matched.pairs
    found: dict[Label, Record] = {}
    for what, table, rows in (
        ("both", matched.new, pairs.new),
        ("gained", matched.new, pairs.gained),
        ("lost", matched.old, pairs.lost),
    ):
        codes, labels = matched.labels(table, rows)
        for code, label in enumerate(labels):
            own = rows[codes == code]
            entry = found.setdefault(label, {"both": 0, "gained": 0, "lost": 0, "examples": {}})
            entry[what] += len(own)
            if what != "both" and len(own):
                first = table.select(list(pairs.key)).take(pa.array(own[:EXAMPLES]))
                entry["examples"][what] = first.to_pylist()
    for label, entry in found.items():
        if entry["gained"] or entry["lost"]:
            yield {"table": matched.name, **asdict(label), **entry}


def failures(new: Side, old: Side) -> Record:
    """Groups of failures of one side alone, in tables that both have; `compared` says if both state them."""
    if new.failures is None or old.failures is None:
        return {"compared": False, "new": [], "gone": []}
    shared = pa.array(sorted(new.tables.keys() & old.tables.keys()), pa.string())
    after, before = _groups(new.failures, shared), _groups(old.failures, shared)
    return {
        "compared": True,
        "new": [_named(group, after[group]) for group in sorted(after.keys() - before.keys())],
        "gone": [_named(group, before[group]) for group in sorted(before.keys() - after.keys())],
    }


def _groups(failures: pa.Table, tables: pa.Array) -> dict[tuple[str, ...], int]:
    kept = failures.filter(pc.is_in(failures["table"], tables))
    counted = kept.group_by(list(GROUP)).aggregate([([], "count_all")]).to_pylist()
    return {tuple(entry[name] for name in GROUP): entry["count_all"] for entry in counted}


def _named(group: tuple[str, ...], cases: int) -> Record:
    return {**dict(zip(GROUP, group, strict=True)), "cases": cases}
