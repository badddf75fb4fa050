"""Properties that hold for whatever the case files say."""

from __future__ import annotations

import functools
import random
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opatlas.catalogue import load as catalogue
from opatlas.catalogue import matching
from opatlas.config import datasets, document
from opatlas.errors import UserError
from opatlas.ops.ids import format_id, parse_id
from opatlas.ops.spec import load_op, op_names
from opatlas.planning.plan import make_plan

REPOSITORY = Path(__file__).parents[3]
DATASETS = ("trtllm/1.3.0rc20/sm90", "vllm/0.24.0/sm100", "sglang/0.5.14/sm120", "sglang/0.5.16/sm90")
EDITS = 1000


@functools.cache
def ops_of(desk, name):
    return desk.plan(name).ops


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_ids_are_the_cases(desk, data):
    op = data.draw(st.sampled_from([op for name in DATASETS for op in ops_of(desk, name) if len(op.rows)]))
    index = data.draw(st.integers(0, len(op.rows) - 1))
    assert parse_id(op.ids[index]) == (op.op.name, op.cases[index])
    assert format_id(op.op.name, op.cases[index]) == op.ids[index]


@pytest.mark.parametrize("name", DATASETS)
def test_no_id_and_no_table_key_twice(desk, name):
    keys: set[tuple] = set()
    for op in ops_of(desk, name):
        assert len(set(op.ids)) == len(op.ids)
        assert op.cases == sorted(op.cases)
        parts = [values.tolist() for values in op.op.table.key_values(op.columns)]
        kernels = list(op.columns.get("dispatch", [""] * len(op.rows)))
        table = (op.op.table.name, op.op.table.op_name)
        named = [(*table, *key) for key in zip(*parts, kernels, strict=True)]
        assert keys.isdisjoint(named)
        keys.update(named)
        assert len(set(named)) == len(named)


shapes = st.tuples(
    st.sampled_from([4, 8, 20, 28, 40, 96]),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([80, 112, 128, 160]),
    st.sampled_from([0, 512, 4096]),
)


@given(st.lists(shapes, min_size=1, max_size=3, unique=True))
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_new_model_changes_no_other_models_cases(desk, tmp_path_factory, model_entry, drawn):
    root = tmp_path_factory.mktemp("new")
    for folder in ("config", "cases"):
        shutil.copytree(REPOSITORY / folder, root / folder)
    layers = [
        {"heads": heads, "kv_heads": kv, "head_dim": dim, "windows": [window], "tp": [1, 2]}
        for heads, kv, dim, window in drawn
    ]
    entry = model_entry("aaa/First", attention=layers, gemm=[{"n": [77], "k": [33]}])
    (root / "cases/models/aaa.yaml").write_text(entry)
    for op in ("attention_generation", "gemm"):
        before, after = desk.op(DATASETS[1], op), type(desk)(root).op(DATASETS[1], op)
        old, new = before.owners, after.owners
        assert old.keys() <= new.keys()
        for case, owners in new.items():
            assert tuple(owner for owner in owners if owner != "aaa/First") == old.get(case, ())


TOKENS = [
    "", "-1", "0", "7", "999999999999999999999", "1.5", "true", "null", "[]", "{}", "nope", "'x'", "\t", "[1",
    "{a: 1", "- x", "&a", "*missing", "!!python/name:os.system", "\u00e9\u0000", "[[1]]", "2026-01-01",
    "0x10", ".inf", "~", "fp8", "gemm", "[1, 1]", "1e9", '"', "a: b: c", "sm90", "w4a16_mxfp4", "not: 3",
]  # fmt: skip


def edited(text: str, draw: random.Random) -> str:
    """The text with one thing changed, as a slip of the hand would."""
    lines = text.splitlines()
    at = draw.randrange(len(lines))
    kind = draw.randrange(6)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        lines.insert(at, lines[draw.randrange(len(lines))])
    elif kind == 2:
        lines[at] = " " * draw.randrange(5) + lines[at].lstrip()
    elif kind == 3:
        cut = draw.randrange(len(lines[at]) + 1)
        lines[at] = lines[at][:cut] + draw.choice(TOKENS) + lines[at][cut:]
    else:
        words = lines[at].replace(",", " , ").replace("]", " ] ").split(" ")
        words[draw.randrange(len(words))] = draw.choice(TOKENS)
        lines[at] = " ".join(words)
    return "\n".join(lines) + "\n"


def test_a_thousand_edits_give_a_plan_or_a_clear_error(tmp_path, monkeypatch):
    for folder in ("config", "cases"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder)
    config = datasets.load(tmp_path)
    files = sorted((tmp_path / "cases").rglob("*.yaml"))
    originals = {path: path.read_text() for path in files}
    read = document.read_yaml
    kept = {path: read(path, f"cases/{path.relative_to(tmp_path / 'cases')}") for path in files}
    touched: list[Path] = []

    def quick(path, name=None):
        return read(path, name) if path in touched or path not in kept else kept[path]

    monkeypatch.setattr(document, "read_yaml", quick)
    monkeypatch.setattr(matching, "read_yaml", quick)
    draw = random.Random(20260101)
    valid, messages = 0, []
    for _ in range(EDITS):
        path = draw.choice(files)
        touched[:] = [path]
        path.write_text(edited(originals[path], draw))
        try:
            cases = catalogue.load(tmp_path)
            backend, name = draw.choice(
                [("trtllm", DATASETS[0]), ("vllm", DATASETS[1]), ("sglang", DATASETS[2])]
            )
            ops = [op for op in op_names() if (load_op(op).sweep or op) == path.stem] or [
                draw.choice(op_names())
            ]
            declared = {op: p for op, p in cases.precisions[backend].items() if op in ops}
            if declared:
                one = catalogue.Catalogue(
                    cases.grids,
                    cases.models,
                    {backend: declared},
                    cases.skips,
                    cases.dispatch,
                    cases.unverified,
                )
                make_plan(config, one, config.dataset(name), {}).case_plan_hash  # noqa: B018
            valid += 1
        except UserError as error:
            messages.append(str(error))
        finally:
            path.write_text(originals[path])
    assert valid > EDITS / 10
    assert len(messages) > EDITS / 10
    assert [text for text in messages if "cases/" not in text and "the plan is empty" not in text] == []
