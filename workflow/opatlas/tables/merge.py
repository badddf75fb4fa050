"""Makes the tables of a dataset of its shards.

What a row was measured for comes from the plan, joined on the case id; what was measured comes from the
shard. Nothing depends on the order of files: tables are sorted by their key.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opatlas.config.datasets import RESULTS, Dataset
from opatlas.errors import UserError
from opatlas.files import write_atomically
from opatlas.ops.spec import Columns
from opatlas.planning.dataset import PlannedDataset
from opatlas.planning.plan import OpPlan
from opatlas.planning.shards import Shard
from opatlas.shards.file import ShardFile
from opatlas.staleness.fingerprint import SHORT
from opatlas.tables import sources
from opatlas.tables.canonical import content_hash, encode
from opatlas.tables.labels import published_fields
from opatlas.tables.repeatability import COMPARED, repeatability
from opatlas.tables.schema import FORMAT, FRAMEWORKS, TYPES, failures_schema, table_key, table_schema

FAILURES = "failures"
RECORD = "tables.json"
PER_MS = {"ms": 1.0, "us": 1000.0}

Record = dict[str, Any]
Whole = list[tuple[Shard, ShardFile]]


def tables_folder(planned: PlannedDataset) -> Path:
    """Where the tables of a dataset lie before they are published."""
    return RESULTS / "tables" / planned.dataset.name / planned.fingerprint[:SHORT]


def merge_dataset(planned: PlannedDataset, folder: Path, root: Path) -> Record:
    """Writes every table, the failures and, last, the record of what they were made of; returns the record.

    Raises UserError, and writes nothing, when a shard is missing, damaged or of another plan, when rows
    are not of one schema, or when two rows share a table key.
    """
    contents: dict[str, bytes] = {}
    summaries: Record = {}
    kernels: Record = {}
    relabelled: list[Record] = []
    manifests = []
    first: dict[str, list[ShardFile]] = {}
    failures = [failures_schema().empty_table()]
    for name, ops in by_table(planned).items():
        schema = _schema(ops)
        parts = []
        for op in ops:
            shards = [(shard, sources.read(root, shard)) for shard in planned.shards_of(op.op.name)]
            # Only what the audit sample is compared with is kept of the shards, which are large.
            first[op.op.name] = [replace(whole, rows=whole.rows.select(COMPARED)) for _, whole in shards]
            fields, notes = published_fields(planned, op)
            relabelled += notes
            parts.append(_rows(planned.dataset, op, shards, schema, fields))
            failures.append(_failures(op, shards))
            kernels[op.op.name] = sources.kernels(whole.rows for _, whole in shards)
            manifests += [(shard, whole.manifest) for shard, whole in shards]
            del shards
        table = _sorted(parts, (*table_key(ops[0].op), "kernel_source", "op_name", "case_id"))
        _refuse_duplicates(name, table, table_key(ops[0].op))
        del parts
        contents[name] = encode(table)
        summaries[name] = _summary(table, contents[name])
        del table
    table = _sorted(failures, ("table", "op", "case_id"))
    contents[FAILURES] = encode(table)
    summaries[FAILURES] = _summary(table, contents[FAILURES])
    record = {
        "format": FORMAT,
        "dataset": planned.dataset.name,
        "fingerprint": planned.fingerprint,
        "tables": summaries,
        "kernels": kernels,
        "relabelled": relabelled,
        **sources.provenance(manifests),
        "repeatability": repeatability(root, planned, first),
        "foreign": [f"{path}: {what}" for path, what in sources.foreign(planned, root)],
    }
    for name, content in contents.items():
        write_atomically(folder / f"{name}.parquet", content)
    write_atomically(folder / RECORD, json.dumps(record, indent=1, sort_keys=True).encode() + b"\n")
    return record


def by_table(planned: PlannedDataset) -> dict[str, list[OpPlan]]:
    """Table name -> the ops with a runner whose rows it holds."""
    tables: dict[str, list[OpPlan]] = {}
    for op in planned.plan.ops:
        if op.runner and len(op.rows):
            tables.setdefault(op.op.table.name, []).append(op)
    return tables


def _schema(ops: Sequence[OpPlan]) -> pa.Schema:
    """The one schema of the ops of a table."""
    schema = table_schema(ops[0].op.table)
    for op in ops[1:]:
        if not table_schema(op.op.table).equals(schema, check_metadata=True):
            names = f"{ops[0].op.name} and {op.op.name}"
            raise UserError(f"{op.op.table.name}: {names} declare different columns for one table")
    return schema


def _sorted(parts: Sequence[pa.Table], columns: Iterable[str]) -> pa.Table:
    order = [(name, "ascending") for name in dict.fromkeys(columns)]
    names = set(parts[0].column_names)
    return pa.concat_tables(parts).sort_by([by for by in order if by[0] in names]).combine_chunks()


def _rows(dataset: Dataset, op: OpPlan, shards: Whole, schema: pa.Schema, published: Columns) -> pa.Table:
    """The rows of one op under the columns of its table."""
    rows = pa.concat_tables([_labelled(shard, whole.rows) for shard, whole in shards])
    # Each shard's cases are the planned ones: its fingerprint is made of them.
    place = pc.index_in(rows["case_id"], value_set=pa.array(op.ids, pa.string())).to_numpy()
    fields = {name: values[place] for name, values in published.items()}
    brought = _brought(op, rows)
    table = op.op.table
    computed: dict[str, Any] = {
        "framework": FRAMEWORKS.get(dataset.backend, dataset.backend),
        "version": dataset.version,
        "op_name": table.op_name,
    }
    for column in table.columns:
        values = column.values(fields) if column.values else brought[column.name]
        computed[column.name] = pa.array(values, TYPES[column.type])
    for name, unit in table.measured:
        if name in brought:
            computed[name] = pa.array(brought[name], pa.float64())
        else:
            computed[name] = pc.multiply(rows["latency"], PER_MS[unit])
    computed |= _operands(table.difference, rows)
    columns = [_column(computed.get(name), rows, name) for name in schema.names]
    return pa.table(columns, schema=schema)


def _operands(names: Sequence[str], rows: pa.Table) -> dict[str, Any]:
    """Both timings of rows that are differences, from what they bring; null for the others."""
    if not names:
        return {}
    records = [json.loads(text or "{}") for text in rows["values"].to_pylist()]
    return {name: pa.array([record.get(name) for record in records], pa.float64()) for name in names}


def _column(value: Any, rows: pa.Table, name: str) -> Any:
    if value is None:
        return rows[name]
    return pa.repeat(pa.scalar(value), rows.num_rows) if isinstance(value, str) else value


def _brought(op: OpPlan, rows: pa.Table) -> Mapping[str, list[Any]]:
    """Values that rows bring themselves: what tells the rows of a case apart, and times beside `latency`."""
    table = op.op.table
    names = [column.name for column in table.columns if column.values is None]
    if len(table.measured) > 1:
        names += [name for name, _ in table.measured if name != "latency"]
    if not names:
        return {}
    records = [json.loads(text or "{}") for text in rows["values"].to_pylist()]
    for case_id, record in zip(rows["case_id"].to_pylist(), records, strict=True):
        if lacking := [name for name in names if name not in record]:
            raise UserError(f"{table.name}: the row of {case_id} brings no {', '.join(lacking)}")
    return {name: [record[name] for record in records] for name in names}


def _labelled(shard: Shard, table: pa.Table) -> pa.Table:
    return table.append_column("shard", pa.repeat(pa.scalar(shard.key), table.num_rows))


def _refuse_duplicates(name: str, table: pa.Table, key: Sequence[str]) -> None:
    """UserError with both sources of the first two rows that share a key."""
    same = np.ones(max(table.num_rows - 1, 0), dtype=bool)
    for column in key:
        values = table[column].combine_chunks()
        same &= pc.equal(values[1:], values[:-1]).to_numpy(zero_copy_only=False)
    if not same.any():
        return
    first = int(np.flatnonzero(same)[0])
    one, two = table.slice(first, 2).to_pylist()
    where = ", ".join(f"{column}={one[column]}" for column in key)
    sources = "\n".join(
        f"  {row['case_id']} of {row['shard']}, attempt {row['attempt']}, latency {row.get('latency')}"
        for row in (one, two)
    )
    raise UserError(f"{name}: {int(same.sum())} rows share the key of another; two of {where}:\n{sources}")


def _failures(op: OpPlan, shards: Whole) -> pa.Table:
    """The failures of one op, each in the group that the plan now counts its case in."""
    schema = failures_schema()
    table = pa.concat_tables([_labelled(shard, whole.failures) for shard, whole in shards])
    place = pc.index_in(table["case_id"], value_set=pa.array(op.ids, pa.string())).to_pylist()
    computed: dict[str, Any] = {
        "table": op.op.table.name,
        "op": op.op.name,
        "group": pa.array([op.group(op.cases[index]) for index in place], pa.string()),
    }
    columns = [_column(computed.get(name), table, name) for name in schema.names]
    return pa.table(columns, schema=schema)


def _summary(table: pa.Table, content: bytes) -> Record:
    return {
        "rows": table.num_rows,
        "content": content_hash(table),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
