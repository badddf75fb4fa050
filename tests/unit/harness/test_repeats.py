"""Second runs: what is transient, what is not, and which of two cases is to blame."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest


def first_of(shard, m):
    return shard.outcomes()[m]["first"]


@pytest.mark.parametrize(
    ("behaviour", "kind", "reason"),
    [
        ("out_of_memory", "out_of_memory", "host"),
        ("device_out_of_memory", "out_of_memory", "device"),
        ("poison", "cuda_fatal", None),
        ("segfault", "worker_died", None),
        ("contended", "invalid_measurement", "contended"),
        ("fill_disk", "unexpected", "disk_full"),
    ],
)
def test_what_passes_alone_is_a_row_that_carries_the_first_outcome(shard, behaviour, kind, reason):
    shard.behave({2: [behaviour, "fine"]})
    shard.plan(3)
    shard.run()
    assert shard.classes() == {1: "row", 2: "row", 3: "row"}
    assert (first_of(shard, 2)["class"], first_of(shard, 2)["reason"]) == (kind, reason)
    assert [shard.runs(1) - (kind == "cuda_fatal"), shard.runs(2), shard.runs(3)] == [1, 2, 1]


def test_two_different_outcomes_are_both_kept_and_the_lone_one_counts(shard):
    shard.behave({1: ["segfault", "raises"]})
    shard.plan(1)
    shard.run()
    outcome = shard.outcomes()[1]
    assert (outcome["class"], outcome["first"]["class"]) == ("unexpected", "worker_died")
    assert outcome["repeat"]["class"] == "unexpected"
    assert shard.done()["failures"] == 1


def test_memory_held_by_a_leftover_is_no_property_of_the_shape(shard):
    shard.behave({1: "leave_child", 2: "oom_beside_child"})
    shard.plan(2)
    shard.run()
    assert shard.classes() == {1: "row", 2: "row"}
    assert first_of(shard, 2)["class"] == "out_of_memory"


def test_one_poisoned_case_of_ten_costs_only_itself(shard):
    shard.behave({4: "poison"})
    shard.plan(10)
    shard.run()
    assert shard.classes() == {m: "cuda_fatal" if m == 4 else "row" for m in range(1, 11)}
    assert shard.done()["failures"] == 1


def test_one_hanging_case_of_five_costs_only_itself(shard):
    shard.behave({3: "sleep"})
    shard.plan(5, run={"deadline_floor_s": 1.0})
    shard.run()
    assert shard.classes() == {m: "hang" if m == 3 else "row" for m in range(1, 6)}


def test_a_process_that_stopped_itself_is_a_hang_without_a_stack(shard):
    shard.behave({1: ["stop_itself", "fine"]})
    shard.plan(1, run={"deadline_floor_s": 0.5})
    shard.run()
    assert (first_of(shard, 1)["class"], first_of(shard, 1)["stack"]) == ("hang", None)


def test_a_build_may_take_longer_than_a_case(shard):
    shard.behave({1: "build:sleep", 2: "fine"})
    cases = [{"id": shard.case_id(m), "build": str(m), "cost_s": 0} for m in (1, 2)]
    shard.plan(cases, run={"deadline_floor_s": 0.5, "build_s": 1.0})
    shard.run()
    outcome = shard.outcomes()[1]
    assert (outcome["class"], outcome["phase"]) == ("hang", "build")


@pytest.mark.parametrize("behaviour", ["poison_silently", "poison_late"])
def test_a_late_error_is_charged_to_the_case_that_caused_it(shard, behaviour):
    """The row that case 3 had written doesn't count; case 4 ran well alone."""
    shard.behave({3: behaviour})
    shard.plan(6)
    shard.run()
    assert shard.classes() == {m: "cuda_fatal" if m == 3 else "row" for m in range(1, 7)}
    assert first_of(shard, 4)["class"] == "cuda_fatal"
    assert first_of(shard, 4)["phase"] == ("before" if behaviour == "poison_late" else "measure")
    blamed = shard.outcomes()[3]
    assert blamed["first"]["case"] == shard.case_id(4)
    assert blamed["repeat"]["class"] == "cuda_fatal"
    assert [record["case"] for record in shard.read().superseded] == [shard.case_id(3)]
    assert (shard.done()["rows"], shard.done()["failures"]) == (5, 1)


def test_a_late_error_at_the_next_build_is_charged_to_the_build_before(shard):
    shard.behave({2: "poison_silently"})
    shard.plan([{"id": shard.case_id(m), "build": str(m // 3), "cost_s": 0} for m in (1, 2, 3, 4)])
    shard.run()
    assert shard.classes() == {1: "row", 2: "cuda_fatal", 3: "row", 4: "row"}


def test_a_case_before_the_error_that_runs_well_alone_keeps_its_row(shard):
    shard.behave({3: ["poison_silently", "fine"]})
    shard.plan(5)
    shard.run()
    assert shard.classes() == dict.fromkeys(range(1, 6), "row")
    assert [shard.runs(m) for m in range(1, 6)] == [1, 1, 2, 2 - 1, 1]
    cleared = [record for record in shard.records() if record["record"] == "cleared"]
    assert [record["case"] for record in cleared] == [shard.case_id(3)]
    assert shard.read().superseded == []


def test_a_row_still_under_suspicion_at_the_end_of_an_attempt_is_measured_again(shard):
    shard.behave({3: ["poison_silently", "sleep", "fine"]})
    shard.plan(4)
    process = shard.start()
    until = time.monotonic() + 20
    while not (Path(f"{shard.script}.runs").exists() and shard.runs(3) == 2):
        assert time.monotonic() < until
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert shard.classes() == {1: "row", 2: "row", 4: "row"}
    shard.run()
    assert shard.classes() == {1: "row", 2: "row", 3: "row", 4: "row"}
    assert [shard.runs(m) for m in (1, 2, 3)] == [1, 1, 3]


def test_a_prefix_on_every_line_changes_no_class(shard):
    shard.behave({1: "prefix_output", 3: "prefix_output"})
    shard.plan(4)
    shard.run()
    assert shard.classes() == {1: "unsupported", 2: "row", 3: "unsupported", 4: "row"}
    assert "[rank0]: a line" in shard.log()


def test_what_cases_print_reaches_the_log_of_the_attempt(shard):
    shard.behave({1: "close_output", 2: "print_megabytes", 3: "asks_for_user"})
    shard.plan(3)
    shard.run()
    assert len(shard.log()) > 40 << 20
    assert "user opatlas" in shard.log()
    (attempt,) = shard.done()["attempts"]
    assert attempt["log"]["bytes"] == sum(path.stat().st_size for path in shard.folder.glob("*.log"))
