"""Labels against their facts, and labels put right afterwards (FIELD M9, D10)."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from opatlas.catalogue import load as catalogue
from opatlas.catalogue import matching
from opatlas.catalogue.labels import Labels, Relabel
from opatlas.catalogue.load import Catalogue
from opatlas.catalogue.matching import Match
from opatlas.checks import evidence
from opatlas.checks.run import run
from opatlas.config import datasets
from opatlas.errors import UserError
from opatlas.planning.dataset import PlannedDataset
from opatlas.planning.dataset import load as load_dataset
from opatlas.planning.plan import Plan, make_plan
from opatlas.planning.shards import cut
from opatlas.publishing.provenance import document
from opatlas.staleness.fingerprint import context
from opatlas.tables.canonical import content_hash

REPOSITORY = Path(__file__).parents[3]
TRTLLM = "trtllm/1.3.0rc20/sm90"


@cache
def cases() -> Catalogue:
    return catalogue.load(REPOSITORY)


def planned(op: str, precision: dict[str, str]) -> PlannedDataset:
    """Forty cases of one op of TensorRT-LLM, in a precision of our choice, as if it had a runner."""
    config = datasets.load(REPOSITORY, {"subset": "few", "limit": 40, "audit_share": 0})
    dataset = config.dataset(f"{TRTLLM}@few")
    declared = replace(cases(), precisions={"trtllm": {op: (precision,)}})
    plan = make_plan(config, declared, dataset, {op: True})
    (entry,) = plan.ops
    measured = context(dataset, op, entry.runtime, config.settings.measure)
    shards = cut(dataset, entry, measured, 1e9, {})
    return PlannedDataset(config, plan, tuple(shards), labels=cases().labels("trtllm", 90))


def measured(lab: Any, of: PlannedDataset) -> evidence.Evidence:
    lab.planned = of
    digest = of.plan.ops[0].runtime.digest
    place = {"timing_method": "cuda_graph", "device": "NVIDIA H200", "image_digest": digest}
    attempt = {
        "id": "a1",
        "node": "node1",
        "started": "",
        "versions": {"framework": "1.3.0rc20"},
        "facts": {},
    }
    lab.write(change=lambda rows: ([{**row, **place} for row in rows], []), attempts=[attempt])
    lab.merge()
    return evidence.load(of, lab.folder)


def findings(found: evidence.Evidence) -> list[Any]:
    return [finding for finding in run(found, "it").findings if finding.check == "labels"]


@pytest.fixture
def mislabelled(lab: Any) -> evidence.Evidence:
    return measured(lab, planned("mla_context", {"dtype": "bfloat16", "kv_dtype": "fp8"}))


RELABEL = Relabel(
    Match("cases/relabels.yaml:1", ("trtllm",), ("mla_context",), (90,), None, {"kv_dtype": "fp8"}),
    {"dtype": "fp8"},
    "the trace shows FP8 products",
)


def test_a_label_that_its_facts_belie_is_named_with_the_rule(mislabelled: evidence.Evidence) -> None:
    (finding,) = findings(mislabelled)
    assert finding.count == 40
    assert finding.message.startswith("mla_dtype must be fp8: attention products of a prefill over an FP8")
    assert "cases/labels.yaml:" in finding.message
    assert "cases/relabels.yaml" in finding.advice


def test_relabelling_changes_one_column_and_is_recorded(lab: Any, mislabelled: evidence.Evidence) -> None:
    before = mislabelled.tables["context_mla_perf"].sort_by("case_id")
    old = mislabelled.planned
    new = replace(old, labels=replace(old.labels, relabels=(RELABEL,)))
    assert new.fingerprint != old.fingerprint
    assert [shard.fingerprint for shard in new.shards] == [shard.fingerprint for shard in old.shards]
    lab.planned = new
    record = lab.merge()
    after = evidence.load(new, lab.folder)
    assert findings(after) == []
    table = after.tables["context_mla_perf"].sort_by("case_id")
    changed = [name for name in table.column_names if not table[name].equals(before[name])]
    assert changed == ["mla_dtype"]
    rest = [name for name in table.column_names if name not in changed]
    assert content_hash(table.select(rest).combine_chunks()) == content_hash(
        before.select(rest).combine_chunks()
    )
    note = {"entry": "cases/relabels.yaml:1", "op": "mla_context", "to": {"dtype": "fp8"}, "cases": 40}
    assert record["relabelled"] == [{**note, "reason": "the trace shows FP8 products"}]
    assert document(new, record, {}, [], None)["relabelled"] == record["relabelled"]
    assert json.loads((lab.folder / "tables.json").read_text())["relabelled"] == record["relabelled"]


def test_two_labels_that_become_one_key_are_refused(lab: Any) -> None:
    of = planned("mla_context", {"dtype": "bfloat16", "kv_dtype": "fp8"})
    both = replace(RELABEL, to={"heads": 16})
    lab.planned = replace(of, labels=replace(of.labels, relabels=(both,)))
    lab.write()
    with pytest.raises(UserError, match="share the key of another"):
        lab.merge()


def test_heads_that_stay_as_tp_grows_are_of_an_older_meaning(lab: Any) -> None:
    precision = {"dtype": "bfloat16", "attn_dtype": "bfloat16", "kv_dtype": "bfloat16"}
    good = measured(lab, planned("mla_context_module", precision))
    name = "mla_context_module_perf"
    assert findings(good) == []
    table = good.tables[name]
    old = table.set_column(
        table.column_names.index("num_heads"),
        table.schema.field("num_heads"),
        pa.array(np.full(table.num_rows, 128)),
    )
    told = [finding.message for finding in findings(replace(good, tables={name: old}))]
    assert told[0] == "num_heads is not that of the case"
    assert all("is 128 at every tp_size: it must be that of one rank" in message for message in told[1:])
    assert len(told) > 1


def plans() -> list[tuple[Plan, Labels]]:
    config = datasets.load(REPOSITORY)
    names = [
        f"{base}/sm{sm}"
        for base in ("trtllm/1.3.0rc20", "vllm/0.24.0", "sglang/0.5.14")
        for sm in (80, 90, 100)
    ]
    chosen = [config.dataset(name) for name in [*names, "sglang/0.5.16/sm90", "torch/2.11.0/sm90"]]
    return [
        (make_plan(config, cases(), dataset, {}), cases().labels(dataset.backend, dataset.platform.sm))
        for dataset in chosen
    ]


def test_plans_hold_every_rule_and_every_rule_speaks_of_a_planned_case() -> None:
    spoke = set()
    for plan, labels in plans():
        for op in plan.ops:
            for rule in labels.rules_of(op.op.name, op.op.fields):
                concerned = op.rows.passing(rule.match.tests())
                must = [(field, matching.test_of(condition)) for field, condition in rule.must.items()]
                assert not (concerned & ~op.rows.passing(must)).any(), (plan.dataset.name, op.op.name, rule)
                if concerned.any():
                    spoke.add(rule.match.label)
    assert spoke == {rule.match.label for rule in cases().label_rules}


def copy(tmp_path: Path) -> Path:
    for part in ("config", "cases"):
        shutil.copytree(REPOSITORY / part, tmp_path / part)
    return tmp_path


def test_a_relabelling_in_the_file_measures_nothing_again(tmp_path: Path, lab: Any) -> None:
    root = copy(tmp_path / "tree")
    before = load_dataset(root, "torch/2.13.0/cpu")
    entry = (
        "- {backend: torch, op: gemm, where: {dtype: float32, m: 1}, to: {dtype: bfloat16}, reason: a test}\n"
    )
    (root / "cases" / "relabels.yaml").write_text(entry)
    after = load_dataset(root, "torch/2.13.0/cpu")
    assert after.fingerprint != before.fingerprint
    assert [shard.path for shard in after.all_shards] == [shard.path for shard in before.all_shards]
    (root / "cases" / "relabels.yaml").write_text(f"# A comment moves the entry.\n{entry}")
    assert load_dataset(root, "torch/2.13.0/cpu").fingerprint == after.fingerprint


def test_mistakes_in_both_lists_are_told_together(tmp_path: Path) -> None:
    root = copy(tmp_path)
    (root / "cases" / "labels.yaml").write_text("- {op: gemm, must: {nosuch: 1}, reason: ''}\n")
    (root / "cases" / "relabels.yaml").write_text("- {where: {m: 1}, to: {dtype: [fp8]}, reason: x}\n")
    with pytest.raises(UserError) as error:
        catalogue.load(root)
    text = str(error.value)
    assert "cases/labels.yaml:1: labels[0].must: gemm has no field 'nosuch'" in text
    assert "labels[0].reason: say why, and what shows it" in text
    assert "relabels[0].to: dtype: expected one value, found ['fp8']" in text
    assert "relabels[0].op: is missing: name the op whose rows get other labels" in text


def test_relabelled_rows_are_in_the_published_file(lab: Any) -> None:
    lab.planned = replace(
        lab.planned,
        labels=Labels("torch", None, (), (replace(RELABEL, match=replace(RELABEL.match, **GEMM)),)),
    )
    lab.write()
    lab.merge()
    table = pq.read_table(lab.folder / "gemm_perf.parquet").to_pylist()
    renamed = {row["gemm_dtype"] for row in table if "/dtype=float32/" in row["case_id"]}
    assert renamed == {"fp8"}


GEMM: dict[str, Any] = {"backends": None, "ops": ("gemm",), "sms": None, "where": {"dtype": "float32"}}
