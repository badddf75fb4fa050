"""Journals: whole records survive any end of the file, and each case has one outcome."""

from __future__ import annotations

import errno
import os
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opatlas.errors import UserError
from opatlas.harness import journal
from opatlas.harness.ticket import Key


def head(attempt="a1", started="2026-01-01", context="c"):
    return {
        "record": "attempt", "format": 1, "attempt": attempt, "started": started, "context": context,
        "node": "n1",
    }  # fmt: skip


def row(case="x", attempt="a1", generation=0, **more):
    return {
        "record": "row",
        "case": case,
        "generation": generation,
        "attempt": attempt,
        "first": None,
        **more,
    }


def failure(case="x", attempt="a1", **more):
    return {**row(case, attempt), "record": "failure", "class": "hang", "phase": "measure", **more}


def begin(case="x", attempt="a1"):
    return {**row(case, attempt), "record": "begin"}


def write(folder, *records, attempt="a1"):
    path = folder / f"attempt-{attempt}.journal"
    writer = journal.Writer(path)
    for record in records:
        writer.append(record)
    writer.sync()
    writer.close()
    return path


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
RECORDS = st.lists(st.dictionaries(st.text(), JSON, max_size=4), max_size=6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(records=RECORDS, data=st.data())
def test_a_journal_cut_at_any_byte_holds_the_records_before_the_cut(tmp_path, records, data):
    path = tmp_path / "attempt-a1.journal"
    path.unlink(missing_ok=True)
    write(tmp_path, *records)
    content = path.read_bytes()
    assert list(journal.records(path)) == records
    cut = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:cut])
    problems = []
    assert list(journal.records(path, problems)) == records[: content[:cut].count(b"\n")]
    assert problems == []


@pytest.mark.parametrize("end", [b"", b"\x00" * 100, b"\x00" * 50 + b"\n", b"12345678 {}\n", b"deadbeef {\n"])
def test_a_torn_end_is_left_out_silently(tmp_path, end):
    path = write(tmp_path, head(), row())
    path.write_bytes(path.read_bytes() + end)
    journals = journal.read(tmp_path)
    assert list(journals.outcomes) == [Key("x", 0)]
    assert journals.problems == []


def test_a_corrupt_line_elsewhere_is_named_and_the_rest_counts(tmp_path):
    path = write(tmp_path, head(), row("x"), row("y"), row("z"))
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b'"y"', b'"Y"')
    path.write_bytes(b"".join(lines))
    journals = journal.read(tmp_path)
    assert [key.case for key in journals.outcomes] == ["x", "z"]
    assert journals.problems == [f"{path}: line 3 is corrupt and left out"]


def test_a_writer_never_writes_to_a_file_that_is_there(tmp_path):
    write(tmp_path, head())
    with pytest.raises(FileExistsError):
        write(tmp_path, head())


def test_a_full_disk_leaves_the_whole_records(tmp_path, monkeypatch):
    path = tmp_path / "attempt-a1.journal"
    writer = journal.Writer(path)
    writer.append(head())
    before = path.read_bytes()
    real = os.write
    room = [20]

    def write_some(fd, data):
        if not room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, data[: room.pop()])

    monkeypatch.setattr(os, "write", write_some)
    with pytest.raises(UserError, match="the disk is full"):
        writer.append(row())
    assert path.read_bytes() == before


def test_records_reach_the_disk_within_a_second(tmp_path, monkeypatch):
    now = [0.0]
    synced = []
    monkeypatch.setattr(journal.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(now[0]))
    writer = journal.Writer(tmp_path / "attempt-a1.journal")
    synced.clear()
    for step in range(41):
        now[0] = 1 + step / 10
        if step < 30:
            writer.append(row())
        writer.tick()
    assert synced[0] <= 2
    assert all(later - earlier <= 1 for earlier, later in pairwise(synced))
    assert synced[-1] >= 3.9
    assert len(synced) < 10


def test_a_number_that_is_none_is_refused(tmp_path):
    writer = journal.Writer(tmp_path / "attempt-a1.journal")
    with pytest.raises(ValueError, match="not JSON compliant"):
        writer.append(row(latency=float("nan")))
    assert (tmp_path / "attempt-a1.journal").read_bytes() == b""


def test_a_row_wins_over_a_failure_and_the_first_row_wins(tmp_path):
    write(tmp_path, head("a2", "2026-01-02"), row("x", "a2"), row("y", "a2"), attempt="a2")
    write(tmp_path, head("a1", "2026-01-01"), failure("x", "a1"), row("y", "a1"), attempt="a1")
    write(tmp_path, head("a3", "2026-01-03"), row("x", "a3"), failure("z", "a3"), attempt="a3")
    journals = journal.read(tmp_path)
    chosen = {key.case: (outcome["record"], outcome["attempt"]) for key, outcome in journals.outcomes.items()}
    assert chosen == {"x": ("row", "a2"), "y": ("row", "a1"), "z": ("failure", "a3")}
    assert len(journals.superseded) == 3
    assert list(journals.attempts) == ["a1", "a2", "a3"]


@pytest.mark.parametrize(
    ("met", "then", "counts"),
    [
        (row("y", "a2"), None, {"y": "row"}),
        (row("y", "a2"), failure("x", "a2"), {"y": "row", "x": "failure"}),
        (row("y", "a2"), {**row("x", "a2"), "record": "cleared", "row": "a1"}, {"y": "row", "x": "row"}),
        (row("y", "a2"), row("x", "a2"), {"y": "row", "x": "row"}),
        (failure("y", "a2"), None, {"y": "failure", "x": "row"}),
    ],
)
def test_a_row_under_suspicion_counts_only_when_it_is_cleared(tmp_path, met, then, counts):
    write(tmp_path, head("a1"), row("x"))
    after = {"case": "x", "generation": 0, "attempt": "a1"}
    first = {"class": "cuda_fatal", "phase": "measure", "after": after}
    later = [{**met, "first": first}, *([then] if then else [])]
    write(tmp_path, head("a2", "2026-01-02"), *later, attempt="a2")
    outcomes = journal.read(tmp_path).outcomes
    assert {key.case: outcome["record"] for key, outcome in outcomes.items()} == counts


def test_generations_are_apart(tmp_path):
    write(tmp_path, head(), row("x"), row("x", generation=2))
    assert set(journal.read(tmp_path).outcomes) == {("x", 0), ("x", 2)}


def test_strangers_are_left_out_and_named(tmp_path):
    write(tmp_path, head(context="c"), row())
    other = write(tmp_path, head("a2", context="d"), row("y", "a2"), attempt="a2")
    headless = write(tmp_path, row("z", "a3"), attempt="a3")
    newer = write(tmp_path, {**head("a4"), "format": 2}, row("w", "a4"), attempt="a4")
    write(tmp_path, attempt="a5")
    (tmp_path / "gemm_perf.csv").write_text("another backend's staging file")
    journals = journal.read(tmp_path, "c")
    assert list(journals.outcomes) == [Key("x", 0)]
    for path in (other, headless, newer):
        assert any(problem.startswith(f"{path}: ") for problem in journals.problems)
    assert len(journals.problems) == 3


def test_an_attempt_that_was_lost_names_what_it_was_running(tmp_path):
    write(tmp_path, head(), begin("x"), row("x"), begin("y"))
    write(tmp_path, head("a2"), begin("z", "a2"), {"record": "end", "attempt": "a2"}, attempt="a2")
    journals = journal.read(tmp_path)
    assert dict(journals.interrupted) == {("y", 0): 1}
    assert list(journals.ends) == ["a2"]


def test_progress(tmp_path):
    assert journal.progress(tmp_path).planned == 0
    cases = '{"id": "x"}, {"id": "y"}, {"id": "z"}, {"id": "w"}'
    (tmp_path / "todo.ticket.json").write_text(f'{{"context": "c", "cases": [{cases}]}}')
    write(tmp_path, head(), begin("x"), row("x"), begin("y"), failure("y"), begin("z"))
    progress = journal.progress(tmp_path)
    assert (progress.planned, progress.rows, dict(progress.failures)) == (4, 1, {"hang": 1})
    assert (progress.running, progress.node, progress.attempts) == (("z",), "n1", 1)
    assert progress.updated is not None
    assert not progress.finished
    (tmp_path / "todo.done.json").write_text("{}")
    assert journal.progress(tmp_path).finished
