"""What checks look at: the merged tables of a dataset, what they were made of, and the plan."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opatlas.checks.finding import some
from opatlas.config.platforms import Peaks
from opatlas.errors import UserError
from opatlas.ops.spec import Array, Work
from opatlas.planning.dataset import PlannedDataset
from opatlas.planning.plan import OpPlan
from opatlas.planning.rows import combined
from opatlas.tables import sources
from opatlas.tables.canonical import content_hash, differences
from opatlas.tables.merge import FAILURES, RECORD, by_table
from opatlas.tables.schema import failures_schema, table_schema


@dataclass(frozen=True)
class OpRows:
    """What of a dataset is of one op's planned cases.

    `place` and `failed` are indices into the plan's cases: of each row, so that `op.columns[field][place]`
    are the rows' case fields, and of each failure.
    """

    table: str
    op: OpPlan
    rows: pa.Table
    place: Array
    failed: Array
    peaks: Peaks

    def column(self, name: str) -> Array:
        """A column of numbers as numpy values; nulls are NaN."""
        values: Array = self.rows[name].to_numpy()
        return values

    def codes(self, name: str) -> tuple[Array, list[Any]]:
        """A number for each row, equal for equal values of a column, and the value of each number."""
        coded = self.rows[name].combine_chunks().dictionary_encode(null_encoding="encode")
        return coded.indices.to_numpy(), coded.dictionary.to_pylist()

    def ids(self, chosen: Array) -> list[str]:
        """The case ids of the rows that `chosen` (a mask) names."""
        return self.rows["case_id"].filter(pa.array(chosen)).to_pylist()  # type: ignore[no-any-return]

    def id(self, row: int) -> str:
        """The case id of one row."""
        return str(self.rows["case_id"][int(row)].as_py())

    def planned_ids(self, chosen: Array) -> tuple[str, ...]:
        """The first few ids of the planned cases that `chosen` (a mask) names."""
        return some(self.op.ids[index] for index in np.flatnonzero(chosen))

    def precisions(self) -> list[tuple[str, Array]]:
        """Each precision of the op as text, with a mask of its rows."""
        at = [self.op.op.fields.index(name) for name in self.op.op.precision]
        values = [self.op.rows.values[index] for index in at]
        codes = [self.op.rows.codes[index][self.place] for index in at]
        kind = combined(codes, [len(own) for own in values])
        _, first = np.unique(kind, return_index=True)
        return [
            (
                "/".join(str(own[code[row]]) for own, code in zip(values, codes, strict=True)),
                kind == kind[row],
            )
            for row in first
        ]

    @cached_property
    def part(self) -> Array | None:
        """What tells apart the rows of one case; None where each has one."""
        if self.op.op.rows == 1:
            return None
        own = [column.name for column in self.op.op.table.columns if column.values is None]
        names = [name for name in ("kernel_source", "op_name", *own) if name in self.rows.column_names]
        parts = [self.codes(name) for name in dict.fromkeys(names)]
        return combined([codes.astype(np.int64) for codes, _ in parts], [len(found) for _, found in parts])

    @cached_property
    def latency_ms(self) -> Array | None:
        """The rows' latencies; None where the table has other times."""
        return self.column("latency") if ("latency", "ms") in self.op.op.table.measured else None

    @cached_property
    def work_ms(self) -> Array:
        """The time that each row's work takes at the platform's ceilings; bytes alone without one of FLOP."""
        return self._at_ceilings[self.place]

    @cached_property
    def least_ms(self) -> Array:
        """The time below which no row can be: that of the work that is certain."""
        certain: Array = self.op.work.certain * self._at_ceilings
        return certain[self.place]

    @cached_property
    def _at_ceilings(self) -> Array:
        return work_ms(self.op.work, self.op.columns[self.op.op.dtype], self.peaks)


def work_ms(work: Work, dtypes: Array, peaks: Peaks) -> Array:
    """The time that work takes at the ceilings of each case's precision."""
    peak = np.array([peaks.flops.get(dtype, np.inf) for dtype in dtypes])
    seconds: Array = np.maximum(work.flops / peak, work.moved_bytes / peaks.bytes_per_s)
    return 1e3 * seconds


@dataclass(frozen=True)
class Evidence:
    """`tables` holds those that are of their schema; `broken` says what is wrong with a table's file.

    `record` is what merge noted: contexts, shards, attempts, kernels.
    """

    planned: PlannedDataset
    tables: Mapping[str, pa.Table]
    failures: pa.Table
    broken: Mapping[str, list[str]]
    record: Mapping[str, Any]

    @cached_property
    def ops(self) -> tuple[OpRows, ...]:
        """The rows of each op whose table can be read."""
        return tuple(
            _op_rows(name, op, self.tables[name], self.failures, self.planned.dataset.platform.peaks)
            for name, ops in by_table(self.planned).items()
            if name in self.tables
            for op in ops
        )


def _op_rows(name: str, op: OpPlan, table: pa.Table, failures: pa.Table, peaks: Peaks) -> OpRows:
    ids = pa.array(op.ids, pa.string())
    place, failed = (pc.index_in(own["case_id"], value_set=ids) for own in (table, failures))
    rows = table if place.null_count == 0 else table.filter(place.is_valid())
    return OpRows(name, op, rows, place.drop_null().to_numpy(), failed.drop_null().to_numpy(), peaks)


def load(planned: PlannedDataset, folder: Path) -> Evidence:
    """Reads what merge wrote; UserError when it was made of another plan, or when its record is gone."""
    return _load(planned, folder, read_record(planned, folder))


def load_published(planned: PlannedDataset, root: Path, record: Mapping[str, Any]) -> Evidence:
    """Reads a published dataset; `record` is its provenance. UserError when it was made of another plan."""
    target = planned.dataset.target
    if record["fingerprint"] != planned.fingerprint:
        raise UserError(
            f"{target}: was published of another plan than today's; snakemake {target} makes it anew, "
            f"snakemake {target}.audit.json says what differs"
        )
    foreign = [f"{path}: {what}" for path, what in sources.foreign(planned, root)]
    return _load(planned, root / target, {**record, "foreign": foreign})


def _load(planned: PlannedDataset, folder: Path, record: Mapping[str, Any]) -> Evidence:
    wanted = {name: table_schema(ops[0].op.table) for name, ops in by_table(planned).items()}
    wanted[FAILURES] = failures_schema()
    tables: dict[str, pa.Table] = {}
    broken: dict[str, list[str]] = {}
    for name, schema in wanted.items():
        table = _read(folder / f"{name}.parquet", schema)
        if isinstance(table, list):
            broken[name] = table
            continue
        tables[name] = table
        if content_hash(table) != record["tables"].get(name, {}).get("content"):
            broken[name] = ["its content is not what was merged"]
    failures = tables.pop(FAILURES, failures_schema().empty_table())
    return Evidence(planned, tables, failures, broken, record)


def read_record(planned: PlannedDataset, folder: Path) -> dict[str, Any]:
    """The record of what the tables in a folder were made of."""
    path = folder / RECORD
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        made_of = record["fingerprint"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: cannot be read ({error}); remove the folder and run again") from None
    if made_of != planned.fingerprint:
        raise UserError(f"{path}: the tables are those of another plan; remove the folder and run again")
    return record


def _read(path: Path, schema: pa.Schema) -> pa.Table | list[str]:
    """The table, or what is wrong with its file."""
    try:
        with path.open("rb") as file:
            table = pq.ParquetFile(file).read()
    except FileNotFoundError:
        return ["the file is missing"]
    except (pa.ArrowException, OSError, ValueError) as error:
        return [f"the file cannot be read: {str(error).strip().splitlines()[0]}"]
    if wrong := differences(table.schema, schema):
        return wrong
    table = table.select(schema.names)
    if nulls := [field.name for field in schema if not field.nullable and table[field.name].null_count]:
        return [f"column {name} has nulls" for name in nulls]
    return table.cast(schema)
