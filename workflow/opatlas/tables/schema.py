"""Columns, types and units of the published tables: an explicit Arrow schema for each."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from opatlas.ops.spec import Op, Table

FORMAT = 1
TYPES = {"string": pa.string(), "int64": pa.int64(), "double": pa.float64(), "bool": pa.bool_()}

# How consumers spell a backend's framework; a backend that is not named here is spelled as itself.
FRAMEWORKS = {"trtllm": "TRTLLM", "sglang": "SGLang", "vllm": "VLLM", "torch": "Torch"}


class Published(NamedTuple):
    """A column that tables have whatever their op: docs/dataset.md lists them with these words."""

    name: str
    type: str
    unit: str
    nullable: bool
    meaning: str


PREFIX = (
    Published("framework", "string", "", False, "the backend's framework, as consumers spell it"),
    Published("version", "string", "", False, "its public version; the exact one is in provenance.json"),
    Published("device", "string", "", False, "product name of what ran the row, as the driver gives it"),
    Published("op_name", "string", "", False, "the kind of work, as consumers name it"),
    Published("kernel_source", "string", "", False, "the kernel or path that ran, as the framework says"),
)

FURTHER = (
    Published("latency_mad", "double", "ms", False, "median absolute deviation of the samples"),
    Published("latency_ci", "double", "ms", False, "half the 95 % confidence interval of the median"),
    Published("samples", "int64", "", False, "number of samples"),
    Published("stop_reason", "string", "", False, "why sampling stopped: converged, budget or max_samples"),
    Published("timing_method", "string", "", False, "how it was timed"),
    Published("sm_clock_mhz", "double", "MHz", True, "SM clock during the samples"),
    Published("throttled", "bool", "", False, "the device ran slower than asked, also when repeated"),
    Published("power_w", "double", "W", True, "mean power; null unless asked for"),
    Published("latency_sustained", "double", "ms", True, "latency once settled; null unless asked for"),
    Published("sm_clock_sustained_mhz", "double", "MHz", True, "SM clock then; null unless asked for"),
    Published("case_id", "string", "", False, "the case"),
    Published("shard", "string", "", False, "the shard it was measured in, <name>-<fingerprint>"),
    Published("attempt", "string", "", False, "the attempt of that shard, listed in provenance.json"),
    Published("job_id", "string", "", True, "the batch job; null where there was none"),
    Published("node", "string", "", False, "the host"),
    Published("gpu_uuid", "string", "", True, "the GPU; null on cpu"),
    Published("image_digest", "string", "", True, "the image it ran in; null in the host's environment"),
)

# failures.parquet: one row per case that ran and did not yield its rows.
FAILURES = (
    Published("table", "string", "", False, "the table that lacks the case"),
    Published("op", "string", "", False, "the op"),
    Published("case_id", "string", "", False, "the case"),
    Published("generation", "int64", "", False, "how often the case was asked for again"),
    Published("class", "string", "", False, "failure class"),
    Published("reason", "string", "", True, "the cause within a class, where it has several"),
    Published("exception", "string", "", True, "type of the exception"),
    Published("message", "string", "", False, "what it said"),
    Published("traceback", "string", "", True, "where it was raised"),
    Published("group", "string", "", False, "the (model, dtype) group that failures are counted in"),
    Published("first", "string", "", True, "JSON: what the first of two runs met"),
    Published("repeat", "string", "", True, "JSON: what the second one met, alone in a fresh worker"),
    Published("shard", "string", "", False, "the shard it ran in, <name>-<fingerprint>"),
    Published("attempt", "string", "", False, "the attempt of that shard, listed in provenance.json"),
    Published("job_id", "string", "", True, "the batch job; null where there was none"),
    Published("node", "string", "", False, "the host"),
)


def table_schema(table: Table) -> pa.Schema:
    """The schema of a published table, units in the fields' metadata."""
    own = {
        column.name: _field(
            column.name, column.type, nullable=column.values is None and column.name not in table.key
        )
        for column in table.columns
    }
    prefix = [own.pop(column.name, published(column)) for column in (PREFIX if table.prefix else ())]
    values = [_field(name, "double", unit, nullable=len(table.measured) > 1) for name, unit in table.measured]
    operands = [_field(name, "double", "ms", nullable=True) for name in table.difference]
    return pa.schema([*prefix, *own.values(), *values, *operands, *map(published, FURTHER)])


def failures_schema() -> pa.Schema:
    return pa.schema(list(map(published, FAILURES)))


def published(column: Published) -> pa.Field:
    return _field(column.name, column.type, column.unit, column.nullable)


def table_key(op: Op) -> tuple[str, ...]:
    """The columns that no two rows of the op's table may agree in.

    Where one shape is planned on several kernels, the kernel is one of them.
    """
    return (*op.table.key, *(["kernel_source"] if "dispatch" in op.fields else []))


def _field(name: str, type: str, unit: str = "", nullable: bool = False) -> pa.Field:
    return pa.field(name, TYPES[type], nullable, {"unit": unit} if unit else None)
