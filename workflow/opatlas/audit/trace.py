"""From a row of a published table to the job that measured it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from opatlas.audit.published import Published, open_dataset
from opatlas.errors import UserError
from opatlas.shards import file
from opatlas.shards.file import Damaged

SHOWN = 20


@dataclass(frozen=True)
class Trace:
    """One row (or failure) and where it comes from. `details` are what only the shard's file holds:
    kernels, notes, exact framework version; empty where that file is gone."""

    row: Mapping[str, Any]
    shard: Mapping[str, Any]
    attempt: Mapping[str, Any]
    log: str
    details: Mapping[str, Any]

    def text(self) -> str:
        """What people want to know first, one fact a line."""
        row, facts = self.row, self.attempt.get("facts") or {}
        versions = self.attempt.get("versions") or {}
        lines = [str(row["case_id"])]
        if "class" in row:
            lines.append(f"  failure   {row['class']}: {row['message']}")
        else:
            lines.append(
                f"  latency   {row.get('latency')} ms, {row['samples']} samples, {row['stop_reason']}"
            )
            lines.append(f"  timed by  {row['timing_method']}, kernel_source {row['kernel_source']}")
        lines += [
            f"  shard     {self.shard['path']}",
            f"  attempt   {row['attempt']}, started {self.attempt.get('started')}",
            f"  job       {row['job_id'] or 'none'} on {row['node']}",
            f"  device    {facts.get('device')}, {facts.get('uuid') or 'no UUID'}",
            f"  runtime   {row.get('image_digest') or 'host'}, "
            + ", ".join(f"{name} {version}" for name, version in sorted(versions.items())),
            f"  log       {self.attempt['log']} ({self.log})",
            *(f"  {name:<9} {value}" for name, value in self.details.items()),
        ]
        return "\n".join(lines)


def trace(root: Path, dataset: str, table: str, wanted: Mapping[str, str]) -> list[Trace]:
    """Every row of a published table whose columns have these values, given as text.

    UserError when dataset, table or column is unknown, a value is not of the column's type, or no row fits.
    """
    published = open_dataset(root, dataset)
    rows = _matching(published, table, wanted)
    return [_trace(published, row) for row in rows.to_pylist()]


def text(traces: list[Trace]) -> str:
    """The first of many traces as text."""
    parts = [found.text() for found in traces[:SHOWN]]
    if len(traces) > SHOWN:
        parts.append(f"and {len(traces) - SHOWN} more; name more columns")
    return "\n".join(parts)


def _matching(published: Published, name: str, wanted: Mapping[str, str]) -> pa.Table:
    table = published.table(name)
    where = f"{published.target}/{name}.parquet"
    rows = table
    for column, value in wanted.items():
        if column not in table.column_names:
            raise UserError(f"{where}: has no column {column!r}; there are {', '.join(table.column_names)}")
        try:
            scalar = pa.scalar(value).cast(table.schema.field(column).type)
        except pa.ArrowInvalid:
            kind = table.schema.field(column).type
            raise UserError(f"{where}: {column} is of type {kind}, found {value!r}") from None
        rows = rows.filter(pc.equal(rows[column], scalar))
        if not rows.num_rows:
            values = sorted(table[column].unique().drop_null().to_pylist())
            known = ", ".join(map(str, values[:SHOWN])) + (", ..." if len(values) > SHOWN else "")
            raise UserError(f"{where}: no such row has {column}={value}; {column} is one of {known}")
    return rows


def _trace(published: Published, row: Mapping[str, Any]) -> Trace:
    shard = published.shards[row["shard"]]
    attempt = published.provenance["attempts"][row["attempt"]]
    log = _log(published.root / attempt["log"], attempt["log_sha256"])
    return Trace(row, shard, attempt, log, _details(published.root / shard["path"], row))


def _log(path: Path, sha256: str) -> str:
    if not path.exists():
        return "gone"
    unchanged = hashlib.sha256(path.read_bytes()).hexdigest() == sha256
    return "as recorded" if unchanged else "changed since"


def _details(path: Path, row: Mapping[str, Any]) -> dict[str, Any]:
    """What the shard's file tells of a row beyond the table."""
    if "class" in row:
        return {}
    try:
        rows = file.read(path).rows
    except Damaged as error:
        return {"file": error.what}
    own = rows.filter(pc.equal(rows["case_id"], row["case_id"])).to_pylist()
    found = next((one for one in own if one["latency"] == row.get("latency")), None)
    if found is None:
        return {"file": "holds another row now"}
    return {"kernels": ", ".join(found["kernels"]) or "not seen", "notes": json.loads(found["notes"])}
