from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import yaml
from opatlas.checks.run import check_dataset
from opatlas.errors import UserError
from opatlas.planning.dataset import load
from opatlas.publishing import source
from opatlas.publishing.publish import publish_dataset

REPOSITORY = Path(__file__).parents[3]
TABLES = ["context_attention_perf", "gemm_perf", "generation_attention_perf", "moe_perf"]
Make = Callable[..., dict[str, Any]]


@pytest.fixture(autouse=True)
def revision(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit under test changes from run to run."""
    monkeypatch.setattr("opatlas.publishing.publish.revision", lambda: "c" * 40)


def publish(lab: Any) -> str:
    lab.merge()
    check_dataset(lab.planned, lab.folder)
    return publish_dataset(lab.planned, lab.folder, lab.root)


def target(lab: Any) -> Path:
    path: Path = lab.root / lab.planned.dataset.target
    return path


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def make_partial(lab: Any, make_failure: Make, allowed: bool = True) -> None:
    """All of moe fails."""
    lab.write()
    lab.write(lab.shards("moe"), lambda rows: ([], [make_failure(row["case_id"]) for row in rows]))
    lab.settings(allow_partial=allowed)


def test_a_published_dataset_has_all_its_files_and_a_stamp(lab: Any) -> None:
    lab.write()
    message = publish(lab)
    found = files(target(lab))
    stamp = f".dataset-{lab.planned.fingerprint[:16]}"
    expected = {f"{name}.parquet" for name in (*TABLES, "failures")}
    expected |= {"collection_meta.yaml", "provenance.json", "checks.json", "report.html", stamp}
    assert found.keys() == expected
    assert found[stamp].decode().strip() == lab.planned.fingerprint
    assert str(target(lab).readlink()) == f"../../.datasets/torch/2.13.0/cpu-{lab.planned.fingerprint[:16]}"
    assert message.startswith("Published results/torch/2.13.0/cpu: 261 rows, 0 failures")
    assert "results/torch/2.13.0/cpu/report.html" in message
    left = [path.name for path in (lab.root / "results").rglob("*") if path.name.endswith(".tmp")]
    assert left == []


def test_the_tables_are_the_merged_ones_byte_for_byte(lab: Any) -> None:
    lab.write()
    publish(lab)
    for name in TABLES:
        merged = (lab.folder / f"{name}.parquet").read_bytes()
        assert (target(lab) / f"{name}.parquet").read_bytes() == merged


def test_collection_meta_says_what_consumers_ask(lab: Any, make_failure: Make, make_attempt: Make) -> None:
    lab.write(attempts=[make_attempt(started="2026-05-01T10:00:00+00:00")])
    shard = lab.shards("gemm")[0]
    lab.write(
        [shard],
        lambda rows: (rows[1:], [make_failure(rows[0]["case_id"])]),
        attempts=[make_attempt("a2", started="2026-05-02T10:00:00+00:00"), make_attempt("a1")],
    )
    publish(lab)
    meta = yaml.safe_load((target(lab) / "collection_meta.yaml").read_text())
    assert (meta["schema_version"], meta["provenance"]) == (2, "collected")
    exact = {"framework": "2.13.0+cpu", "torch": "2.13.0+cpu"}
    runtime = {"framework": "torch", "version": "2.13.0", "abi": exact}
    assert meta["runtime"] == runtime
    assert sorted(meta["tables"]) == TABLES
    gemm = meta["tables"]["gemm_perf"]
    ids = sorted(next(op for op in lab.planned.plan.ops if op.op.name == "gemm").ids)
    assert gemm["case_plan_hash"] == "sha256:" + hashlib.sha256("\n".join(ids).encode()).hexdigest()
    assert (gemm["rows"], gemm["classified_failures"], gemm["status"]) == (len(ids) - 1, 1, "complete")
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", gemm["collector_hash"])
    assert gemm["collector_ref"] == "c" * 40
    assert gemm["collected_at"] == "2026-05-02T10:00:00+00:00"
    assert meta["tables"]["moe_perf"]["collected_at"] == "2026-05-01T10:00:00+00:00"
    assert gemm["collector_hash"] != meta["tables"]["moe_perf"]["collector_hash"]
    (entry,) = gemm["collections"]
    assert entry["runtime"] == runtime
    assert entry["rows"] == gemm["rows"]


def test_an_op_without_a_runner_makes_its_table_partial_or_leaves_it_out(lab: Any) -> None:
    def shared(op: Any) -> Any:
        if op.op.name == "attention_context":
            return replace(op, op=replace(op.op, table=replace(op.op.table, name="gemm_perf")), runner=False)
        return replace(op, runner=op.op.name != "moe")

    plan = replace(lab.planned.plan, ops=tuple(map(shared, lab.planned.plan.ops)))
    kept = [shard for shard in lab.planned.shards if shard.op in ("gemm", "attention_generation")]
    lab.planned = replace(lab.planned, plan=plan, shards=tuple(kept))
    lab.write()
    publish(lab)
    meta = yaml.safe_load((target(lab) / "collection_meta.yaml").read_text())
    status = {name: entry["status"] for name, entry in meta["tables"].items()}
    assert status == {"gemm_perf": "partial", "generation_attention_perf": "complete"}
    provenance = json.loads((target(lab) / "provenance.json").read_text())
    assert provenance["planned_without_runner"] == {"attention_context": 72, "moe": 21}


def test_provenance_defends_every_number(lab: Any, make_attempt: Make) -> None:
    lab.write(attempts=[make_attempt(facts={"device": "AMD EPYC", "uuid": None, "cores": [1]})])
    publish(lab)
    text = (target(lab) / "provenance.json").read_text()
    found = json.loads(text)
    planned = lab.planned
    assert found["dataset"] == "torch/2.13.0/cpu"
    assert (found["fingerprint"], found["plan_fingerprint"]) == (
        planned.fingerprint,
        planned.plan_fingerprint,
    )
    assert found["case_plan_hash"] == planned.plan.case_plan_hash
    assert found["seed"] == planned.config.settings.seed
    assert found["partial"] == []
    shards = {(entry["op"], entry["fingerprint"]) for entry in found["shards"]}
    assert shards == {(shard.op, shard.fingerprint) for shard in planned.shards}
    assert all(entry["content"] and entry["attempts"] == ["a1"] for entry in found["shards"])
    assert found["attempts"]["a1"]["log_sha256"] == "0" * 64
    assert found["attempts"]["a1"]["facts"]["cores"] == [1]
    assert found["contexts"]["gemm"]["parts"] == dict(planned.shards_of("gemm")[0].context.parts)
    assert found["kernels"]["gemm"]["torch_cpu"]["mkl"] == found["tables"]["gemm_perf"]["rows"]
    left_out = {entry["rule"] for entry in found["ops"]["gemm"]["left_out"]}
    assert left_out == {
        entry.rule for op in planned.plan.ops if op.op.name == "gemm" for entry in op.left_out
    }
    for name, sha in found["files"].items():
        assert hashlib.sha256((target(lab) / name).read_bytes()).hexdigest() == sha
    assert found["files"].keys() | {"provenance.json"} == {
        name for name in files(target(lab)) if not name.startswith(".")
    }


def test_publishing_again_changes_no_byte(lab: Any) -> None:
    lab.write()
    publish(lab)
    before, place = files(target(lab)), target(lab).readlink()
    inode = target(lab).resolve().stat().st_ino
    publish(lab)
    assert (files(target(lab)), target(lab).readlink()) == (before, place)
    assert target(lab).resolve().stat().st_ino == inode


def test_a_stamp_that_was_removed_comes_back(lab: Any) -> None:
    lab.write()
    publish(lab)
    before = files(target(lab))
    (target(lab) / f".dataset-{lab.planned.fingerprint[:16]}").unlink()
    publish(lab)
    assert files(target(lab)) == before


def test_other_rows_of_the_same_plan_get_a_directory_of_their_own(lab: Any) -> None:
    lab.write()
    publish(lab)
    old = target(lab).resolve()
    before = files(old)
    lab.write(lab.shards("moe"), lambda rows: ([{**row, "latency": 77.0} for row in rows], []))
    publish(lab)
    assert target(lab).resolve() == old.with_name(f"{old.name}.1")
    assert files(old) == before
    assert files(target(lab))["moe_perf.parquet"] != before["moe_perf.parquet"]


def test_a_new_plan_replaces_the_old_one_and_a_revert_brings_it_back(lab: Any, fine_lab: Any) -> None:
    fine_lab.root = lab.root
    lab.write()
    publish(lab)
    first = files(target(lab))
    fine_lab.write()
    publish(fine_lab)
    assert f".dataset-{fine_lab.planned.fingerprint[:16]}" in files(target(lab))
    publish(lab)
    assert files(target(lab)) == first


def test_an_empty_directory_in_the_datasets_place_gives_way(lab: Any) -> None:
    lab.write()
    target(lab).mkdir(parents=True)
    publish(lab)
    assert target(lab).is_symlink()


def test_a_directory_with_files_in_the_datasets_place_stays(lab: Any) -> None:
    lab.write()
    target(lab).mkdir(parents=True)
    (target(lab) / "mine.txt").write_text("keep")
    with pytest.raises(UserError, match=r"torch/2\.13\.0/cpu: is a directory with files of its own"):
        publish(lab)
    assert (target(lab) / "mine.txt").read_text() == "keep"


def test_blocking_checks_keep_a_dataset_from_being_published(lab: Any, make_failure: Make) -> None:
    lab.write()
    publish(lab)
    before = files(target(lab))
    make_partial(lab, make_failure, allowed=False)
    with pytest.raises(UserError, match="is not published, blocking checks failed") as error:
        publish(lab)
    assert "moe_perf: 100% of the cases failed" in str(error.value)
    assert "publish.allow_partial" in str(error.value)
    assert files(target(lab)) == before


def test_a_partial_dataset_says_why_in_provenance_and_first_in_the_report(
    lab: Any, make_failure: Make
) -> None:
    make_partial(lab, make_failure)
    message = publish(lab)
    assert "PARTIAL" in message
    reasons = json.loads((target(lab) / "provenance.json").read_text())["partial"]
    assert "moe_perf: 100% of the cases failed" in reasons
    page = (target(lab) / "report.html").read_text()
    assert page.index("moe_perf: 100% of the cases failed") < page.index("<h2>")
    meta = yaml.safe_load((target(lab) / "collection_meta.yaml").read_text())
    moe = meta["tables"]["moe_perf"]
    assert (moe["status"], moe["rows"], moe["classified_failures"]) == ("complete", 0, 21)


def test_tables_that_changed_after_the_check_are_not_published(lab: Any) -> None:
    lab.write()
    lab.merge()
    check_dataset(lab.planned, lab.folder)
    path = lab.folder / "gemm_perf.parquet"
    content = path.read_bytes()
    for damaged in (content[:-1], content.replace(b"parquet-cpp-arrow", b"parquet-cpp-wrong")):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match=r"gemm_perf\.parquet"):
            publish_dataset(lab.planned, lab.folder, lab.root)
    assert not target(lab).exists()


def test_checks_of_another_plan_are_refused(lab: Any) -> None:
    lab.write()
    lab.merge()
    check_dataset(lab.planned, lab.folder)
    path = lab.folder / "checks.json"
    path.write_text(path.read_text().replace(lab.planned.fingerprint, "0" * 64))
    with pytest.raises(UserError, match=r"checks\.json: the checks are those of another plan"):
        publish_dataset(lab.planned, lab.folder, lab.root)
    path.unlink()
    with pytest.raises(UserError, match=r"checks\.json: cannot be read"):
        publish_dataset(lab.planned, lab.folder, lab.root)


def test_a_disk_that_cannot_be_written_leaves_nothing_behind(
    lab: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.write()
    lab.merge()
    check_dataset(lab.planned, lab.folder)

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("opatlas.publishing.publish.os.fsync", full)
    with pytest.raises(UserError, match="the disk is full"):
        publish_dataset(lab.planned, lab.folder, lab.root)
    assert not target(lab).exists()
    assert list((lab.root / "results" / ".datasets" / "torch" / "2.13.0").iterdir()) == []


def test_a_subset_is_published_beside_the_whole_one(lab: Any) -> None:
    lab.write()
    publish(lab)
    whole = files(target(lab))
    lab.planned = load(REPOSITORY, "torch/2.13.0/cpu@few", {"subset": "few", "ops": "moe", "limit": 7})
    lab.write()
    publish(lab)
    assert str(target(lab).readlink()).startswith("../../.datasets/torch/2.13.0/cpu@few-")
    assert files(lab.root / "results/torch/2.13.0/cpu") == whole
    provenance = json.loads((target(lab) / "provenance.json").read_text())
    assert (provenance["subset"]["name"], provenance["subset"]["limit"]) == ("few", 7)
    assert "This is the subset few" in (target(lab) / "report.html").read_text()


class Tags(HTMLParser):
    """Complains about elements that are not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_report_is_one_well_formed_page_with_nothing_fetched(lab: Any, make_failure: Make) -> None:
    make_partial(lab, make_failure)
    lab.write(
        lab.shards("moe"),
        lambda rows: ([], [make_failure(row["case_id"], message="<b>&x\nsecond line") for row in rows]),
    )
    publish(lab)
    page = (target(lab) / "report.html").read_text()
    parser = Tags()
    parser.feed(page)
    assert parser.open == []
    assert not re.search(r"(src|href)=|url\(|@import", page)
    assert "&lt;b&gt;&amp;x" in page
    assert "second line" not in page
    for title in ("Tables", "Checks", "Failures", "How it was measured", "Left out of the plan"):
        assert f"<h2>{title}</h2>" in page


def test_the_revision_is_that_of_the_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"rev-parse": "a" * 40, "status": ""}
    monkeypatch.setattr(source, "_git", lambda command, *rest: answers[command])
    assert source.revision.__wrapped__() == "a" * 40
    answers["status"] = " M workflow/opatlas/errors.py"
    assert source.revision.__wrapped__() == "a" * 40 + "+modified"
    monkeypatch.setattr(source, "_git", lambda *arguments: None)
    assert source.revision.__wrapped__() is None
    monkeypatch.undo()
    monkeypatch.setattr(source, "FOLDER", tmp_path / "workflow" / "opatlas")
    assert source._git("rev-parse", "HEAD") is None
