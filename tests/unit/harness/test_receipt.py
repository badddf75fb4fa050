"""The receipt proves; it is never written early and never half."""

from __future__ import annotations

import hashlib
import json

import pytest
from opatlas.errors import UserError
from opatlas.harness import journal, receipt
from opatlas.harness.ticket import load


@pytest.fixture
def measured(shard):
    shard.behave({2: "raises"})
    shard.plan(3)
    shard.run()
    return shard


def test_it_names_the_attempts_with_hashes_of_what_they_had_written(measured):
    (attempt,) = measured.done()["attempts"]
    (path,) = measured.journals()
    assert attempt["journal"]["file"] == path.name
    assert attempt["journal"]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert attempt["log"]["file"] == path.with_suffix(".log").name
    assert measured.done()["failures"] == 1


def test_a_case_without_an_outcome_is_named(measured):
    ticket = load(measured.ticket)
    journals = measured.read()
    del journals.outcomes[(measured.case_id(3), 0)]
    measured.receipt.unlink()
    with pytest.raises(ValueError, match=r"1 cases have no outcome, the first is gemm/.*m=3/"):
        receipt.write(ticket, journals)
    assert not measured.receipt.exists()


def test_a_disk_that_is_full_leaves_the_old_receipt(measured, monkeypatch):
    before = measured.receipt.read_bytes()

    def full(fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("opatlas.files.os.fsync", full)
    with pytest.raises(UserError, match="the disk is full"):
        receipt.write(load(measured.ticket), measured.read())
    assert measured.receipt.read_bytes() == before
    assert json.loads(before)["cases"] == 3
    assert [path.name for path in measured.folder.glob(".*")] == []


def test_a_lost_attempt_is_named_too(measured):
    lost = journal.Writer(measured.folder / "attempt-lost.journal")
    head = next(iter(measured.read().attempts.values()))
    lost.append({**head, "attempt": "lost"})
    lost.close()
    measured.receipt.unlink()
    measured.run()
    assert {"lost": None}.items() <= {
        one["attempt"]: one["end"] for one in measured.done()["attempts"]
    }.items()
