"""One shard with a case for everything that can go wrong: each ends once, in the right class."""

from __future__ import annotations

import shutil
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

# Behaviour -> class and reason; None is a row.
EXPECTED = {
    "raises": ("unexpected", None),
    "system_exit": ("unexpected", None),
    "interrupt": ("unexpected", None),
    "no_row": ("unexpected", None),
    "not_finite": ("unexpected", None),
    "unsupported": ("unsupported", None),
    "not_implemented": ("unsupported", None),
    "prefix_output": ("unsupported", None),
    "kernel_limit": ("kernel_limit", None),
    "host_bound": ("invalid_measurement", "host_bound"),
    "other_kernel": ("invalid_measurement", "wrong_kernel"),
    "contended": ("invalid_measurement", "contended"),
    "out_of_memory": ("out_of_memory", "host"),
    "device_out_of_memory": ("out_of_memory", "device"),
    "allocate": ("out_of_memory", "host"),
    "wrapped_fatal": ("cuda_fatal", None),
    "poison": ("cuda_fatal", None),
    "segfault": ("worker_died", None),
    "abort": ("worker_died", None),
    "exit_zero": ("worker_died", None),
    "die_beside_child": ("worker_died", None),
    "close_everything": ("worker_died", None),
    "rubbish_in_protocol": ("worker_died", "protocol"),
    "sleep": ("hang", None),
    "sleep_holding_gil": ("hang", None),
    "fill_disk": ("unexpected", "disk_full"),
    "build:raises": ("unexpected", None),
    "build:segfault": ("worker_died", None),
    "print_megabytes": None,
    "close_output": None,
    "corrupt_output": None,
    "leave_child": None,
    "leave_daemon": None,
    "child_returns": None,
    "asks_for_user": None,
}
REPEATED = {"cuda_fatal", "worker_died", "hang", "out_of_memory", "contended", "disk_full"}
M = {name: 2 * place for place, name in enumerate(EXPECTED, 1)}


def build(m):
    """Four neighbours share a build, except where the build itself misbehaves."""
    own = any(M[name] == m for name in EXPECTED if name.startswith("build:"))
    return f"own {m}" if own else f"shared {m // 4}"


@pytest.fixture(scope="module")
def shard(new_shard, tmp_path_factory):
    """Run to its end; each misbehaving case (even m) stands between well-behaved ones of the same build."""
    folder = tmp_path_factory.mktemp("misbehaviour")
    shard = new_shard(folder)
    shard.behave({M[name]: name for name in EXPECTED})
    cases = [
        {"id": shard.case_id(m), "build": build(m), "cost_s": 0.0, "group": "g"}
        for m in range(1, 2 * len(EXPECTED) + 2)
    ]
    # An idle worker takes some 30 MB.
    shard.plan(cases, run={"deadline_floor_s": 1.5, "memory_gib": 0.25})
    shard.run(timeout=300)
    yield shard
    shutil.rmtree(folder)


@pytest.mark.parametrize("name", EXPECTED)
def test_class_and_reason(shard, name):
    outcome = shard.outcomes()[M[name]]
    if EXPECTED[name] is None:
        assert outcome["record"] == "row"
        assert outcome["first"] is None
    else:
        assert (outcome["class"], outcome["reason"]) == EXPECTED[name]


@pytest.mark.parametrize("name", [name for name in EXPECTED if EXPECTED[name]])
def test_both_outcomes_of_what_is_repeated_are_in_one_record(shard, name):
    outcome = shard.outcomes()[M[name]]
    repeated = bool(REPEATED & set(EXPECTED[name]))
    assert (outcome["first"] is not None, outcome["repeat"] is not None) == (repeated, repeated)
    assert shard.runs(M[name]) == (2 if repeated else 1)
    if repeated:
        assert outcome["first"]["class"] == outcome["repeat"]["class"] == EXPECTED[name][0]


def test_well_behaved_cases_between_them_are_rows(shard):
    odd = {m: outcome["record"] for m, outcome in shard.outcomes().items() if m % 2}
    assert odd == dict.fromkeys(range(1, 2 * len(EXPECTED) + 2, 2), "row")


def test_each_case_has_one_record(shard):
    records = [record for record in shard.records() if record["record"] in ("row", "failure")]
    counts = Counter(record["case"] for record in records)
    assert set(counts.values()) == {1}
    assert len(counts) == 2 * len(EXPECTED) + 1
    assert shard.done()["failures"] == sum(value is not None for value in EXPECTED.values())


def test_a_failure_is_written_before_its_worker_is_replaced(shard):
    kinds = [record for record in shard.records() if record["record"] in ("first", "failure", "note")]
    for before, after in pairwise(kinds):
        if after["record"] == "note":
            assert before["record"] in ("first", "failure")


def test_exceptions_keep_type_message_and_traceback(shard):
    outcome = shard.outcomes()[M["raises"]]
    assert outcome["exception"] == "RuntimeError"
    assert outcome["message"] == "the kernel says no"
    assert "misbehave.py" in outcome["traceback"]
    assert (outcome["phase"], outcome["group"]) == ("measure", "g")
    assert shard.outcomes()[M["build:raises"]]["phase"] == "build"


@pytest.mark.parametrize("name", ["sleep", "sleep_holding_gil"])
def test_a_hang_keeps_its_stack(shard, name):
    outcome = shard.outcomes()[M[name]]
    assert f"in {name}" in outcome["stack"]
    assert f"in {name}" in shard.log()


def test_a_death_keeps_how_it_ended_and_where(shard):
    assert shard.outcomes()[M["segfault"]]["exit"] == "signal SIGSEGV"
    assert "in segfault" in shard.outcomes()[M["segfault"]]["stack"]
    assert shard.outcomes()[M["abort"]]["exit"] == "signal SIGABRT"
    assert shard.outcomes()[M["exit_zero"]]["exit"] == "exit 0"
    assert shard.outcomes()[M["die_beside_child"]]["exit"] == "exit 3"


def test_no_core_dump_and_no_process_is_left(shard):
    assert list(shard.folder.parent.rglob("core*")) == []
    marker = str(shard.script).encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            assert marker not in (process / "environ").read_bytes(), process
        except OSError:
            continue


def test_a_user_without_a_passwd_entry_can_ask_for_its_name(shard):
    assert "user opatlas at " in shard.log()
