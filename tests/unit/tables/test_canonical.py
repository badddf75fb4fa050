from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opatlas.tables.canonical import content_hash, differences, encode

SCHEMA = pa.schema(
    [
        pa.field("name", pa.string()),
        pa.field("size", pa.int64()),
        pa.field("time", pa.float64(), metadata={"unit": "ms"}),
        pa.field("good", pa.bool_()),
        pa.field("kernels", pa.list_(pa.string())),
    ]
)
TEXT = st.none() | st.text(max_size=5)
RECORDS = st.lists(
    st.fixed_dictionaries(
        {
            "name": TEXT,
            "size": st.none() | st.integers(-(2**62), 2**62),
            "time": st.none() | st.floats(allow_nan=False),
            "good": st.none() | st.booleans(),
            "kernels": st.none() | st.lists(TEXT, max_size=3),
        }
    ),
    max_size=6,
)


def table(records: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(records, schema=SCHEMA)


@given(RECORDS, RECORDS)
def test_two_contents_have_one_hash_only_when_they_are_equal(
    one: list[dict[str, Any]], two: list[dict[str, Any]]
) -> None:
    # Zeros of either sign are equal and are different content.
    same = repr(table(one).to_pylist()) == repr(table(two).to_pylist())
    assert (content_hash(table(one)) == content_hash(table(two))) == same


@given(RECORDS, st.integers(0, 6))
def test_the_hash_does_not_see_chunks_slices_and_kinds_of_text(
    records: list[dict[str, Any]], cut: int
) -> None:
    whole = table(records)
    chunked = pa.concat_tables([whole.slice(0, cut), whole.slice(cut)])
    assert content_hash(chunked) == content_hash(whole)
    large = [field.with_type(pa.large_string()) if field.type == pa.string() else field for field in SCHEMA]
    assert content_hash(whole.cast(pa.schema(large))) == content_hash(whole)
    assert content_hash(whole.slice(1)) == content_hash(table(records[1:]))
    assert content_hash(pq.read_table(io.BytesIO(encode(whole)))) == content_hash(whole)


def test_the_hash_is_a_fixed_function_of_the_content() -> None:
    """It is stored in files, so no version of any library may change it."""
    records = [
        {"name": "é", "size": 1, "time": 0.5, "good": True, "kernels": ["a", None]},
        {"name": None, "size": None, "time": None, "good": None, "kernels": None},
    ]
    assert content_hash(table(records)) == "049c7e6dae480f73df0398ce387dd58dd6f82dff491123378aa22b41d7d2b7b6"


def test_a_file_is_one_row_group_without_traces_of_pandas() -> None:
    content = encode(table([{"name": "a"}] * 3000))
    metadata = pq.read_metadata(io.BytesIO(content))
    assert metadata.num_row_groups == 1
    assert metadata.row_group(0).column(0).compression == "ZSTD"
    assert b"pandas" not in content
    assert encode(table([{"name": "a"}] * 3000)) == content


def test_a_null_where_none_may_be_is_not_written() -> None:
    strict = pa.schema([pa.field("name", pa.string(), nullable=False)])
    with pytest.raises(pa.ArrowInvalid, match="name"):
        encode(pa.Table.from_pylist([{"name": None}], schema=strict))


def test_differences_name_column_types_and_units() -> None:
    found = pa.schema(
        [
            pa.field("name", pa.large_string()),
            pa.field("size", pa.float64()),
            pa.field("time", pa.float64(), metadata={"unit": "us"}),
            pa.field("good", pa.null()),
            pa.field("more", pa.int64()),
        ]
    )
    assert differences(found, SCHEMA) == [
        "column kernels is missing",
        "column more is unexpected",
        "column size is of type double and must be int64",
        "column time is in us and must be in ms",
        "column good is of type null and must be bool",
    ]
