from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from opatlas.audit.audit import AuditFinding, audit_dataset, differing, quarantine_damaged
from opatlas.errors import UserError
from opatlas.planning.dataset import load
from opatlas.shards import file
from opatlas.staleness.fingerprint import Context

REPOSITORY = Path(__file__).parents[3]
NAME = "torch/2.13.0/cpu"


def audit(lab: Any) -> tuple[bool, list[str]]:
    ok, findings = audit_dataset(lab.planned, lab.root, NAME)
    return ok, list(map(str, findings))


def only(lab: Any, kind: str) -> AuditFinding:
    """The one finding there is; the audit fails where it is damage."""
    ok, findings = audit_dataset(lab.planned, lab.root, NAME)
    assert [finding.kind for finding in findings] == [kind], findings
    assert ok == (kind != "damaged")
    return findings[0]


def flip(path: Path, place: float = 0.3) -> None:
    content = bytearray(path.read_bytes())
    content[int(len(content) * place)] ^= 1
    path.write_bytes(content)


def test_a_whole_dataset_has_no_finding(published: Any) -> None:
    assert audit(published) == (True, [])


@pytest.mark.parametrize("which", ["rows", "failures"])
def test_a_flipped_byte_in_a_shard_is_named(published: Any, which: str) -> None:
    shard = published.shards("gemm")[0]
    path = published.root / shard.path
    flip(path if which == "rows" else file.failures_path(path))
    assert shard.path.stem in only(published, "damaged").place


def test_a_damaged_shard_is_moved_away_alone(published: Any) -> None:
    shard = published.shards("moe")[0]
    content = (published.root / shard.path).read_bytes()
    flip(published.root / shard.path)
    assert quarantine_damaged(published.root, published.planned) == [shard.path]
    assert not (published.root / shard.path).exists()
    assert all((published.root / other.path).exists() for other in published.planned.shards if other != shard)
    assert only(published, "lost").place == str(shard.path)
    assert quarantine_damaged(published.root, published.planned) == []
    kept = list((published.root / "results" / "quarantine").rglob("*.parquet"))
    assert len(kept) == 2
    assert content not in [path.read_bytes() for path in kept]


@pytest.mark.parametrize(
    "name",
    ["gemm_perf.parquet", "failures.parquet", "collection_meta.yaml", "checks.json", "report.html"],
)
def test_a_changed_file_of_the_dataset_is_named(published: Any, name: str) -> None:
    flip(published.root / "results" / NAME / name)
    ok, lines = audit(published)
    assert not ok
    assert f"damaged  results/{NAME}/{name}: has another sha256 than in provenance.json" in lines


def test_missing_and_foreign_files_are_named(published: Any) -> None:
    folder = published.root / "results" / NAME
    (folder / "checks.json").unlink()
    (folder / f".dataset-{published.planned.fingerprint[:16]}").unlink()
    (folder / "notes.txt").touch()
    ok, lines = audit(published)
    assert not ok
    assert [line.split(f"{NAME}/")[1] for line in lines] == [
        f".dataset-{published.planned.fingerprint[:16]}: is missing",
        "checks.json: is missing",
        "notes.txt: is no file of this dataset",
    ]


def change_provenance(lab: Any, change: Callable[[dict[str, Any]], None]) -> None:
    path = lab.root / "results" / NAME / "provenance.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def test_a_number_that_was_changed_with_all_hashes_of_the_dataset_is_found(published: Any) -> None:
    """The table, its sha256 and its content hash fit each other; the shard's file tells."""
    import hashlib

    from opatlas.tables.canonical import content_hash, encode

    path = published.root / "results" / NAME / "gemm_perf.parquet"
    table = pq.read_table(path)
    index = table.column_names.index("latency")
    values = table["latency"].to_pylist()
    changed = table.set_column(index, table.schema.field(index), pa.array([0.9 * values[0], *values[1:]]))
    path.write_bytes(encode(changed))

    def fitting(document: dict[str, Any]) -> None:
        document["files"]["gemm_perf.parquet"] = hashlib.sha256(path.read_bytes()).hexdigest()
        document["tables"]["gemm_perf"]["content"] = content_hash(changed)

    change_provenance(published, fitting)
    finding = only(published, "damaged")
    assert finding.place == f"results/{NAME}/gemm_perf.parquet"
    assert "are not those in the shard's file" in finding.what


def test_a_context_that_was_changed_is_named(published: Any) -> None:
    change_provenance(published, lambda d: d["contexts"]["moe"]["parts"].update(gpu="NVIDIA H200"))
    assert only(published, "damaged").place.endswith("provenance.json: contexts.moe")


def test_logs_that_changed_or_are_gone_are_named(published: Any) -> None:
    flip(published.root / "results/attempts/gemm.log")
    (published.root / "results/attempts/moe.log").unlink()
    ok, lines = audit(published)
    assert not ok
    assert lines == [
        "damaged  results/attempts/gemm.log: the log of attempt a-gemm has another sha256 than recorded",
        "lost     results/attempts/moe.log: the log of attempt a-moe is gone",
    ]


def test_rows_that_were_measured_again_since_are_named(published: Any) -> None:
    published.write(published.shards("moe"), lambda rows: ([{**row, "latency": 9.0} for row in rows], []))
    finding = only(published, "changed")
    assert finding.place == str(published.shards("moe")[0].path)


def with_code(lab: Any, op: str, module: str) -> None:
    """The plan after an edit of a module that measures an op."""
    shards = []
    for shard in lab.planned.shards:
        if shard.op == op:
            parts = dict(shard.context.parts)
            parts["code"] = {**parts["code"], module: "f" * 64}
            shard = replace(shard, context=Context(parts))
        shards.append(shard)
    lab.planned = replace(lab.planned, shards=tuple(shards))


def test_an_edited_runner_is_named(published: Any) -> None:
    with_code(published, "moe", "opatlas.backends.torch.moe")
    finding = only(published, "changed")
    assert (finding.place, finding.what) == (
        "moe",
        "its rows would be measured again: code.opatlas.backends.torch.moe",
    )


def test_an_edit_of_what_makes_tables_is_named(published: Any) -> None:
    published.settings(allow_partial=False)
    change_provenance(
        published, lambda d: d["made_by"].update({"opatlas.tables.merge": "0" * 64, "opatlas.gone": "1" * 64})
    )
    _, lines = audit(published)
    assert lines == [
        "changed  tables: would be made again of the same rows: opatlas.gone, opatlas.tables.merge",
        "changed  settings: differ: allow_partial",
    ]


def test_cases_that_came_and_went_are_counted(published: Any) -> None:
    published.planned = load(REPOSITORY, NAME, {"publish": {"allow_partial": True}})
    gemm = next(op for op in published.planned.plan.ops if op.op.name == "gemm")
    fewer = replace(gemm, rows=gemm.rows.take(slice(2, None)), owner_index=gemm.owner_index[2:])
    ops = tuple(fewer if op is gemm else op for op in published.planned.plan.ops)
    published.planned = replace(
        published.planned, plan=replace(published.planned.plan, ops=ops), shards=published.planned.shards[1:]
    )
    _, lines = audit(published)
    assert "changed  gemm: the plan has 0 cases more and 2 fewer" in lines


def test_a_dataset_that_this_tree_does_not_plan_is_audited_by_itself(published: Any) -> None:
    ok, findings = audit_dataset(None, published.root, NAME)
    assert ok
    assert [finding.what for finding in findings] == ["this tree plans no dataset of this name"]


def test_a_damaged_shard_that_is_not_published_yet_is_named(published: Any, fine_lab: Any) -> None:
    fine_lab.root = published.root
    fine_lab.write()
    shard = next(shard for shard in fine_lab.planned.shards if shard not in published.planned.shards)
    flip(published.root / shard.path)
    ok, findings = audit_dataset(fine_lab.planned, published.root, NAME)
    assert not ok
    assert [finding.place for finding in findings if finding.kind == "damaged"] == [str(shard.path)]


def test_nothing_published_and_no_provenance(lab: Any, published: Any, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"torch/2\.11\.0/cpu: is not published"):
        audit_dataset(None, published.root, "torch/2.11.0/cpu")
    path = published.root / "results" / NAME / "provenance.json"
    path.write_text("{")
    with pytest.raises(UserError, match=r"provenance\.json: cannot be read"):
        audit_dataset(None, published.root, NAME)
    shutil.copytree(path.parent.resolve(), published.root / "results/torch/2.13.0/copy")
    change_provenance_at = published.root / "results/torch/2.13.0/copy/provenance.json"
    change_provenance_at.write_text(json.dumps({"dataset": NAME}))
    with pytest.raises(UserError, match=f"is the provenance of {NAME}"):
        audit_dataset(None, published.root, "torch/2.13.0/copy")


def test_differences_of_documents_have_dotted_names() -> None:
    new = {"a": 1, "b": {"c": 2, "d": 3}, "e": {}}
    old = {"a": 1, "b": {"c": 9}, "f": 1}
    assert differing(new, old) == ["b.c", "b.d", "e", "f"]
