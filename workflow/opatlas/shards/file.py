"""A shard's file: its rows with the manifest in the footer, and its failures in a second file beside it.

Both appear whole or not at all, the failures first: a rows file that can be read proves its shard.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from opatlas.errors import UserError
from opatlas.files import write_atomically
from opatlas.harness.ticket import Key
from opatlas.staleness.fingerprint import SHORT, Context, digest, shard_fingerprint
from opatlas.tables.canonical import content_hash, differences, encode

FORMAT = 1
MANIFEST = b"opatlas.manifest"
FAILURES_OF = b"opatlas.failures"
MANIFEST_KEYS = (
    *("format", "dataset", "op", "shard", "fingerprint", "context", "context_fingerprint", "cases"),
    *("cases_hash", "rows", "failures", "content", "failures_content", "attempts", "controls", "self"),
)
NAME = re.compile(rf"^(?P<shard>[a-z][01]*)-(?P<fingerprint>[0-9a-f]{{{SHORT}}})\.parquet$")

Manifest = dict[str, Any]


def _schema(required: Mapping[str, pa.DataType], optional: Mapping[str, pa.DataType]) -> pa.Schema:
    fields = [pa.field(name, type, nullable=False) for name, type in required.items()]
    return pa.schema(fields + [pa.field(name, type) for name, type in optional.items()])


# One row per row of a case, sorted by case_id, then part. Times in ms, clocks in MHz, power in W; `part` is
# empty unless the op yields several rows a case; `values` is a JSON object of what such a row brings for
# columns of its own; `notes` is JSON; `framework_version` is the exact one.
ROWS = _schema(
    {
        "case_id": pa.string(),
        "generation": pa.int64(),
        "part": pa.string(),
        "kernel_source": pa.string(),
        "latency": pa.float64(),
        "latency_mad": pa.float64(),
        "latency_ci": pa.float64(),
        "samples": pa.int64(),
        "stop_reason": pa.string(),
        "timing_method": pa.string(),
        "throttled": pa.bool_(),
        "kernels": pa.list_(pa.string()),
        "notes": pa.string(),
        "attempt": pa.string(),
        "node": pa.string(),
        "device": pa.string(),
        "framework_version": pa.string(),
    },
    {
        "values": pa.string(),
        "sm_clock_mhz": pa.float64(),
        "power_w": pa.float64(),
        "latency_sustained": pa.float64(),
        "sm_clock_sustained_mhz": pa.float64(),
        "job_id": pa.string(),
        "gpu_uuid": pa.string(),
        "image_digest": pa.string(),
    },
)

# One row per failed case, sorted by case_id. `first` and `repeat` are JSON: what each of two runs met.
FAILURES = _schema(
    {
        "case_id": pa.string(),
        "generation": pa.int64(),
        "class": pa.string(),
        "message": pa.string(),
        "group": pa.string(),
        "node": pa.string(),
        "attempt": pa.string(),
    },
    {
        "reason": pa.string(),
        "exception": pa.string(),
        "traceback": pa.string(),
        "job_id": pa.string(),
        "first": pa.string(),
        "repeat": pa.string(),
    },
)


class Damaged(UserError):
    """A shard's file is not what its name and manifest say."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"{path}: {what}")
        self.path = path
        self.what = what


@dataclass(frozen=True)
class ShardFile:
    rows: pa.Table
    failures: pa.Table
    manifest: Manifest


def failures_path(path: Path) -> Path:
    """The file with the failures of the shard in `path`."""
    return path.with_name(f"{path.stem}.failures.parquet")


def shard_files(folder: Path) -> list[Path]:
    """Every rows file in a folder that is named as a shard's, in order; nothing where there is no folder."""
    return sorted(path for path in folder.glob("s*.parquet") if NAME.match(path.name))


def write(
    path: Path,
    rows: Iterable[Mapping[str, Any]],
    failures: Iterable[Mapping[str, Any]],
    manifest: Mapping[str, Any],
) -> Manifest:
    """Writes both files of a shard and returns the manifest with counts and hashes added.

    ValueError when the records are not of the schemas, or are not the outcomes of the shard's cases.
    """
    measured = _table(rows, ROWS, ("case_id", "part"))
    failed = _table(failures, FAILURES, ("case_id",))
    whole = {
        **manifest,
        "format": FORMAT,
        "cases_hash": _cases_hash(_keys(measured, failed)),
        "rows": measured.num_rows,
        "failures": failed.num_rows,
        "content": content_hash(measured),
        "failures_content": content_hash(failed),
    }
    whole["self"] = _self(whole)
    if fault := _content_fault(whole, measured, failed) or _cases_fault(whole, measured, failed):
        raise ValueError(f"{path}: {fault}")
    link = {"fingerprint": whole["fingerprint"], "content": whole["failures_content"]}
    write_atomically(failures_path(path), _encode(failed, FAILURES_OF, link))
    write_atomically(path, _encode(measured, MANIFEST, whole))
    return whole


def read(path: Path) -> ShardFile:
    """Reads a shard and compares its content with its manifest; Damaged says what differs."""
    manifest = read_manifest(path)
    rows = _read(path, ROWS)
    failures = _read(failures_path(path), FAILURES)
    if fault := _content_fault(manifest, rows, failures):
        raise Damaged(path, fault)
    return ShardFile(rows, failures, manifest)


def verify(path: Path) -> None:
    """Damaged where anything in a shard's files differs from what its manifest says.

    Beyond `read`, the cases must be those that the fingerprint names, and each byte the one that the
    content is written as. Files of another pyarrow (it names itself in the footer) are exempt from that.
    """
    shard = read(path)
    if fault := _cases_fault(shard.manifest, shard.rows, shard.failures):
        raise Damaged(path, fault)
    link = _footer(failures_path(path), FAILURES_OF)[1]
    for file, content in (
        (path, _encode(shard.rows, MANIFEST, shard.manifest)),
        (failures_path(path), _encode(shard.failures, FAILURES_OF, link)),
    ):
        same_writer = pq.read_metadata(file).created_by == _created_by(content)
        if same_writer and file.read_bytes() != content:
            raise Damaged(file, "its bytes are not those that its content is written as")


def read_manifest(path: Path) -> Manifest:
    """The manifest of a shard, from the two footers alone.

    Damaged when a footer is missing or foreign, or when name, row counts and failures don't fit it.
    """
    rows, manifest = _footer(path, MANIFEST)
    failures, link = _footer(failures_path(path), FAILURES_OF)
    if missing := [key for key in MANIFEST_KEYS if key not in manifest]:
        raise Damaged(path, f"its manifest has no {', '.join(missing)}")
    if manifest["format"] != FORMAT:
        raise Damaged(path, f"its manifest is of format {manifest['format']}, not {FORMAT}")
    if manifest["self"] != _self(manifest):
        raise Damaged(path, "its manifest was changed after it was written")
    name = f"{manifest['shard']}-{str(manifest['fingerprint'])[:SHORT]}.parquet"
    if name != path.name:
        raise Damaged(path, f"its manifest is that of {name}")
    if link != {"fingerprint": manifest["fingerprint"], "content": manifest["failures_content"]}:
        raise Damaged(path, f"its manifest names other failures than {failures_path(path).name} holds")
    for kind, found in (("rows", rows), ("failures", failures)):
        if manifest[kind] != found:
            raise Damaged(path, f"holds {found} {kind}, and its manifest says {manifest[kind]}")
    return manifest


def read_keys(path: Path) -> list[Key]:
    """The keys of all outcomes that a shard's files hold; Damaged when they cannot be read."""
    tables = [_open(file, columns=["case_id", "generation"]) for file in (path, failures_path(path))]
    return sorted(_keys(*tables))


def _table(records: Iterable[Mapping[str, Any]], schema: pa.Schema, order: Sequence[str]) -> pa.Table:
    items = sorted(map(_clean, records), key=lambda record: tuple(record[name] for name in order))
    for record in items:
        if unknown := record.keys() - set(schema.names):
            raise ValueError(f"{record['case_id']}: has no column for {', '.join(sorted(unknown))}")
    try:
        table = pa.Table.from_pylist(items, schema=schema)
        table.validate(full=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise ValueError(f"records are not of the schema: {error}") from None
    _no_nulls(table, schema)
    return table


def _clean(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record with text that is no UTF-8 (as a dying framework may print it) made readable."""
    return {
        name: value.encode(errors="replace").decode()
        if isinstance(value, str) and not value.isascii()
        else value
        for name, value in record.items()
    }


def _no_nulls(table: pa.Table, schema: pa.Schema) -> None:
    for field in schema:
        if not field.nullable and table[field.name].null_count:
            raise ValueError(f"column {field.name} must not be null")


def _encode(table: pa.Table, name: bytes, document: Mapping[str, Any]) -> bytes:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return encode(table.replace_schema_metadata({name: text.encode()}))


def _created_by(content: bytes) -> str:
    return str(pq.read_metadata(pa.BufferReader(content)).created_by)


def _footer(path: Path, name: bytes) -> tuple[int, Manifest]:
    """(number of rows, the document in the metadata) of a parquet file."""
    try:
        metadata = pq.read_metadata(path)
        document = json.loads((metadata.metadata or {})[name])
    except FileNotFoundError:
        raise Damaged(path, "is missing") from None
    except KeyError:
        raise Damaged(path, f"has no {name.decode()} in its footer: it is no file of a shard") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise Damaged(path, f"is truncated or no parquet file: {_first_line(error)}") from None
    if not isinstance(document, dict):
        raise Damaged(path, f"the {name.decode()} in its footer is no mapping")
    return metadata.num_rows, document


def _open(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    try:
        with path.open("rb") as file:
            return pq.ParquetFile(file).read(columns=columns)
    except FileNotFoundError:
        raise Damaged(path, "is missing") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise Damaged(path, f"cannot be read: {_first_line(error)}") from None


def _read(path: Path, schema: pa.Schema) -> pa.Table:
    """A table of exactly this schema; text may be stored as string or large_string."""
    table = _open(path)
    if wrong := differences(table.schema, schema):
        raise Damaged(path, "; ".join(wrong))
    try:
        table = table.select(schema.names).cast(schema)
        _no_nulls(table, schema)
    except (pa.ArrowException, ValueError) as error:
        raise Damaged(path, _first_line(error)) from None
    return table


def _keys(*tables: pa.Table) -> list[Key]:
    """The distinct keys of each table, one after the other."""
    keys: list[Key] = []
    for table in tables:
        pairs = zip(table["case_id"].to_pylist(), table["generation"].to_pylist(), strict=True)
        keys += map(Key._make, dict.fromkeys(pairs))
    return keys


def _cases_hash(keys: Iterable[Key]) -> str:
    text = "\n".join(f"{key.case}#{key.generation}" for key in sorted(keys))
    return hashlib.sha256(text.encode()).hexdigest()


def _self(manifest: Manifest) -> str:
    """The hash of a manifest without itself."""
    return digest({key: value for key, value in manifest.items() if key != "self"})


def _content_fault(manifest: Manifest, rows: pa.Table, failures: pa.Table) -> str | None:
    """What in the content of a shard's files is not as its manifest says; None where all is."""
    for what, table in (("content", rows), ("failures_content", failures)):
        found = content_hash(table)
        if found != manifest[what]:
            return f"its {what} has the hash {found[:SHORT]}, its manifest says {manifest[what][:SHORT]}"
    return None


def _cases_fault(manifest: Manifest, rows: pa.Table, failures: pa.Table) -> str | None:
    """What in the cases of a shard's files is not as its manifest says; None where all is."""
    keys = _keys(rows, failures)
    parts = set(zip(*(rows[name].to_pylist() for name in ("case_id", "generation", "part")), strict=True))
    if len(parts) != rows.num_rows:
        return "holds two rows for one part of a case"
    if len(set(keys)) != len(keys) or len(_keys(failures)) != failures.num_rows:
        return "holds two outcomes for one case"
    if len(keys) != manifest["cases"]:
        return f"holds outcomes of {len(keys)} cases, and the shard has {manifest['cases']}"
    context = Context(manifest["context"])
    for what, found in (
        ("cases_hash", _cases_hash(keys)),
        ("context_fingerprint", context.fingerprint),
        ("fingerprint", shard_fingerprint(context, keys)),
    ):
        if found != manifest[what]:
            return (
                f"the {what} of what it holds is {found[:SHORT]}, its manifest says {manifest[what][:SHORT]}"
            )
    return None


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
