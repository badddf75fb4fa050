"""Parquet whose bytes follow from its content, and a hash of that content.

The bytes are the same on every machine and whatever pandas is installed, since pandas has no part in
them. They do differ between versions of pyarrow (its name in the footer, its statistics, its codecs), so
what manifests record and audits compare is `content_hash`, which depends on no library at all.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

Hash = Any


def encode(table: pa.Table) -> bytes:
    """The table as a parquet file: one row group, zstd, no pandas metadata.

    Raises pa.ArrowInvalid where a column that must not be null has a null.
    """
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        row_group_size=max(table.num_rows, 1),
        version="2.6",
        data_page_version="1.0",
        compression="zstd",
        compression_level=3,
        use_dictionary=True,
        write_statistics=True,
        store_schema=True,
    )
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def content_hash(table: pa.Table) -> str:
    """sha256 over names, types and values of the columns, in order; metadata and chunks don't count."""
    sha = hashlib.sha256()
    for field, column in zip(table.schema, table.columns, strict=True):
        sha.update(f"{field.name}:{plain_type(field.type)}:{len(column)}\n".encode())
        _feed(sha, column.combine_chunks())
    return sha.hexdigest()


def plain_type(type: pa.DataType) -> pa.DataType:
    """The type with every kind of text as string, the form that types are compared in."""
    if pa.types.is_large_string(type):
        return pa.string()
    if pa.types.is_list(type) or pa.types.is_large_list(type):
        return pa.list_(plain_type(type.value_type))
    return type


def differences(found: pa.Schema, wanted: pa.Schema) -> list[str]:
    """What in a schema is not as wanted, one line a column; string and large_string are the same."""
    lines = [f"column {name} is missing" for name in wanted.names if name not in found.names]
    lines += [f"column {name} is unexpected" for name in found.names if name not in wanted.names]
    for field in found:
        if field.name not in wanted.names:
            continue
        expected = wanted.field(field.name)
        if plain_type(field.type) != plain_type(expected.type):
            lines.append(f"column {field.name} is of type {field.type} and must be {expected.type}")
        elif (field.metadata or {}).get(b"unit") != (expected.metadata or {}).get(b"unit"):
            lines.append(f"column {field.name} is in {_unit(field)} and must be in {_unit(expected)}")
    return lines


def _feed(sha: Hash, array: pa.Array) -> None:
    valid = np.packbits(pc.is_valid(array).to_numpy(zero_copy_only=False))
    sha.update(valid.tobytes())
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        sha.update(_bytes(pc.fill_null(pc.list_value_length(array), 0), "<i8"))
        _feed(sha, array.flatten())
    elif pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        texts = pc.fill_null(array, "").cast(pa.large_string())
        sha.update(_bytes(pc.binary_length(texts), "<i8"))
        _, offsets, data = texts.buffers()
        if data is not None and len(texts):
            ends = np.frombuffer(offsets, dtype="<i8")
            sha.update(memoryview(data)[ends[texts.offset] : ends[texts.offset + len(texts)]])
    elif pa.types.is_boolean(array.type):
        sha.update(_bytes(pc.fill_null(array, False), "u1"))
    elif pa.types.is_integer(array.type):
        sha.update(_bytes(pc.fill_null(array, 0), "<i8"))
    elif pa.types.is_floating(array.type):
        sha.update(_bytes(pc.fill_null(array, 0.0), "<f8"))
    else:
        raise TypeError(f"no column of the project has the type {array.type}")


def _bytes(array: pa.Array, dtype: str) -> bytes:
    return array.to_numpy(zero_copy_only=False).astype(dtype).tobytes()  # type: ignore[no-any-return]


def _unit(field: pa.Field) -> str:
    return (field.metadata or {}).get(b"unit", b"no unit").decode()  # type: ignore[no-any-return]
