"""A shard from ticket to receipt: what is measured, in what order, what ends it early, and going on."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

ROWS = dict.fromkeys


def wait_for(condition, seconds=20.0):
    until = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.005)
    return value


def begun(shard, m):
    """Whether the journal says that the case began."""
    wanted = shard.case_id(m)
    return any(record["record"] == "begin" and record["case"] == wanted for record in shard.records())


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_every_case_becomes_a_row_and_the_receipt_says_so(shard):
    shard.plan(5)
    shard.run()
    assert shard.classes() == ROWS(range(1, 6), "row")
    receipt = shard.done()
    assert (receipt["cases"], receipt["rows"], receipt["failures"]) == (5, 5, 0)
    assert [outcome["order"] for outcome in shard.outcomes().values()] == [1, 2, 3, 4, 5]
    (row,) = shard.outcomes()[1]["rows"]
    assert row["kernel_source"] == "stub"
    assert 0.01 <= row["latency"] <= 0.11


def test_the_attempt_record_says_where_and_with_what(shard):
    shard.environment["SLURM_JOB_ID"] = "4711"
    shard.plan(1)
    shard.run()
    (attempt,) = shard.read().attempts.values()
    assert attempt["versions"] == {"framework": "1.0.0"}
    assert attempt["facts"]["uuid"] == "STUB-0"
    assert attempt["job_id"] == "4711"
    assert attempt["node"] == os.uname().nodename
    assert attempt["cmdline"][-1] == str(shard.ticket)
    assert (shard.folder / attempt["log"]).exists()


def test_cases_of_one_build_share_it_and_the_order_is_kept(shard):
    builds = ["x", "x", "y", "y", "x"]
    shard.plan([{"id": shard.case_id(m), "build": b, "cost_s": 0} for m, b in enumerate(builds)])
    shard.run()
    counts = [shard.outcomes()[m]["rows"][0]["notes"]["builds"] for m in range(5)]
    assert counts == [1, 1, 2, 2, 3]


def test_control_cases_run_first_and_last_and_are_no_rows(shard):
    controls = [shard.case_id(100), shard.case_id(101)]
    shard.behave({101: "raises"})
    shard.plan(2, control=controls)
    shard.run()
    assert set(shard.outcomes()) == {1, 2}
    kinds = [r["record"] for r in shard.records() if r["record"] in ("control", "row")]
    assert kinds == ["control", "control", "row", "row", "control", "control"]
    seen = [(control["case"], control["when"], "rows" in control) for control in shard.read().controls]
    assert seen == [
        (controls[0], "first", True),
        (controls[1], "first", False),
        (controls[0], "last", True),
        (controls[1], "last", False),
    ]


def test_a_finished_ticket_starts_nothing(shard):
    shard.plan(2)
    shard.run()
    shard.receipt.unlink()
    shard.run()
    assert len(shard.journals()) == 1
    assert shard.done()["rows"] == 2


def test_the_next_attempt_measures_only_what_is_missing(shard):
    shard.plan(3)
    shard.run()
    shard.plan(6)
    shard.run()
    assert shard.classes() == ROWS(range(1, 7), "row")
    assert [shard.runs(m) for m in range(1, 7)] == [1] * 6
    assert len(shard.done()["attempts"]) == 2


def test_rows_of_another_context_are_not_used_but_named(shard):
    shard.plan(2)
    shard.run()
    shard.plan(2, context="d" * 64)
    errors = shard.run()
    assert "another context" in errors
    assert shard.runs(1) == 2


def test_a_new_generation_is_measured_again_and_the_old_row_stays_apart(shard):
    shard.plan(2)
    shard.run()
    again = {"id": shard.case_id(1), "build": "b", "cost_s": 0, "generation": 1}
    shard.plan([again, {"id": shard.case_id(2), "build": "b", "cost_s": 0}])
    shard.run()
    assert (shard.runs(1), shard.runs(2)) == (2, 1)
    outcomes = shard.read().outcomes
    assert len(outcomes) == 3
    assert outcomes[(shard.case_id(1), 0)]["attempt"] != outcomes[(shard.case_id(1), 1)]["attempt"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT])
def test_a_stopping_signal_ends_at_a_case_boundary(shard, number):
    shard.behave({}, seconds=0.3)
    shard.plan(4)
    process = shard.start()
    wait_for(lambda: begun(shard, 2))
    process.send_signal(number)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 75
    assert f"stopped by {number.name}" in errors
    assert list(shard.outcomes()) == [1, 2]
    (end,) = shard.read().ends.values()
    assert end["reason"] == number.name
    assert not shard.receipt.exists()
    shard.run()
    assert [shard.runs(m) for m in range(1, 5)] == [1, 1, 1, 1]
    assert len(shard.done()["attempts"]) == 2


def test_signals_to_the_whole_job_do_not_disturb_the_case(shard):
    """SLURM sends its signals to every process of the job."""
    shard.behave({}, seconds=0.3)
    shard.plan(2)
    process = shard.start()
    wait_for(lambda: begun(shard, 1))
    wait_for(lambda: Path(f"{shard.script}.runs").exists())
    worker = int(Path(f"{shard.script}.runs").read_text().split()[1])
    for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM, signal.SIGINT):
        os.kill(worker, number)
    assert process.wait(20) == 0
    assert shard.classes() == {1: "row", 2: "row"}
    assert shard.runs(1) == 1
    process.communicate()


@pytest.mark.parametrize("second", [True, False])
def test_a_case_that_does_not_end_is_cut_short(shard, second):
    """By a second SIGTERM at once, else when the grace period is over; it stays without an outcome."""
    shard.behave({1: ["sleep", "fine"]})
    shard.plan(2, run={"grace_s": 30.0 if second else 0.3})
    process = shard.start()
    wait_for(lambda: begun(shard, 1))
    process.terminate()
    if second:
        time.sleep(0.1)
        process.terminate()
    process.communicate(timeout=15)
    assert process.returncode == 75
    assert shard.outcomes() == {}
    shard.run()
    assert shard.classes() == {1: "row", 2: "row"}


def test_the_worker_dies_with_its_supervisor_and_what_it_left_is_ended_by_the_next(shard):
    shard.behave({1: ["leave_child", "fine"], 2: ["sleep", "fine"]})
    shard.plan(3)
    process = shard.start()
    wait_for(lambda: begun(shard, 2) and shard.runs(2))
    worker = int(Path(f"{shard.script}.runs").read_text().split()[1])
    children = Path(f"/proc/{worker}/task/{worker}/children").read_text().split()
    assert alive(worker)
    process.kill()
    process.communicate()
    wait_for(lambda: not alive(worker))
    assert [alive(child) for child in children] == [True]
    assert list(shard.scratch.glob("opatlas-*"))
    shard.run()
    assert [alive(child) for child in children] == [False]
    assert shard.classes() == {1: "row", 2: "row", 3: "row"}
    assert shard.runs(1) == 1


def test_a_case_that_was_running_when_its_attempt_was_lost_comes_last(shard):
    shard.behave({2: ["sleep", "fine"]})
    shard.plan(4)
    process = shard.start()
    wait_for(lambda: begun(shard, 2))
    process.kill()
    process.communicate()
    shard.run()
    attempt = list(shard.read().attempts)[-1]
    rows = [r["case"] for r in shard.records() if r["record"] == "row" and r["attempt"] == attempt]
    assert rows == [shard.case_id(3), shard.case_id(4), shard.case_id(2)]


def test_a_failure_that_was_written_before_the_end_is_repeated_alone_in_the_next_attempt(shard):
    shard.behave({2: ["segfault", "sleep", "raises"]})
    shard.plan(3)
    process = shard.start()
    wait_for(lambda: shard.runs(2) == 2 if Path(f"{shard.script}.runs").exists() else False)
    process.kill()
    process.communicate()
    (first,) = shard.read().firsts.values()
    assert first["class"] == "worker_died"
    shard.run()
    outcome = shard.outcomes()[2]
    assert (outcome["class"], outcome["first"]["class"]) == ("unexpected", "worker_died")
    assert outcome["first"]["attempt"] != outcome["attempt"]


def test_a_dead_worker_is_replaced_at_most_once_while_starting(shard):
    shard.behave({}, opening="exit_zero")
    shard.plan(1)
    errors = shard.run(expect=1)
    assert "no worker gets ready: the worker ended: exit 0" in errors
    assert errors.count("\n") == 1


@pytest.mark.parametrize(
    ("changes", "script", "message"),
    [
        (
            {"expect": {"version": "1.0.1"}},
            {},
            "the pinned version is 1.0.1, but the imported framework is 1.0.0",
        ),
        ({"expect": {"version": "1.0.0", "sm": 90}}, {}, "the platform's SM is 90, but this one's is None"),
        (
            {"expect": {"version": "1.0.0", "device": "NVIDIA H200"}},
            {"facts": {"device": "NVIDIA H100"}},
            "the platform's device is NVIDIA H200, but this one's is NVIDIA H100",
        ),
        (
            {"runtime": {"kind": "image", "image": "repo@sha256:1", "digest": "sha256:1"}},
            {},
            "this job belongs in image repo@sha256:1, but it runs outside of any container",
        ),
        ({"op": "nothing"}, {}, "the worker cannot start: ModuleNotFoundError"),
        (
            {"measure": {"speed": 1}},
            {},
            "the worker cannot start: ValueError: speed: there is no such setting",
        ),
    ],
)
def test_a_wrong_place_fails_with_one_line_before_any_case(shard, changes, script, message):
    shard.behave({}, **script)
    shard.plan(2, **changes)
    for name in ("APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"):
        shard.environment[name] = ""
    errors = shard.run(expect=1)
    assert message in errors
    assert errors.count("\n") == 1
    assert "Traceback" not in errors
    assert shard.outcomes() == {}
    assert not Path(f"{shard.script}.runs").exists()
    assert not shard.receipt.exists()
    (end,) = shard.read().ends.values()
    assert message in end["reason"]


@pytest.mark.parametrize(
    ("module", "case"), [("opatlas.backends.stub.unlisted", 2), ("opatlas.backends.stub.script", None)]
)
def test_a_module_that_the_fingerprint_does_not_know_fails_the_shard(shard, module, case):
    """A late import fails the case that makes it, an early one everything."""
    known = json.loads(shard.plan(3) or shard.ticket.read_text())["code"]
    del known[module]
    shard.behave({2: "foreign_module"})
    shard.plan(3, code=known)
    for _ in range(2):
        errors = shard.run(expect=1)
        assert f"module {module} is imported" in errors
        assert errors.count("\n") == 1
    assert set(shard.outcomes()) == ({1} if case else set())
    assert not shard.receipt.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot read the ticket: No such file or directory"),
        ("{", "not a JSON file"),
        ('{"format": 2}', "format: expected a ticket of format 1"),
        ('{"format": 1, "colour": "red"}', "unknown key 'colour' of Ticket"),
        (
            '{"format": 1, "cases": [{"id": "x"}]}',
            "missing 2 required positional arguments: 'build' and 'cost_s'",
        ),
    ],
)
def test_a_ticket_that_is_none_is_one_line(shard, text, message):
    shard.folder.mkdir(parents=True)
    if text is not None:
        shard.ticket.write_text(text)
    errors = shard.run(expect=1)
    assert f"{shard.ticket}: " in errors
    assert message in errors
    assert errors.count("\n") == 1


def test_a_full_disk_ends_with_one_line_and_a_valid_journal(shard):
    """The limit on a file's size stands for the disk's: writing stops in the middle of a record too."""
    shard.plan(40)
    process = shard.start("import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))")
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "the disk is full; what is finished so far is kept, mend this and run again" in errors
    assert errors.count("\n") == 1
    finished = set(shard.outcomes())
    assert 0 < len(finished) < 40
    assert shard.read().problems == []
    (path,) = shard.journals()
    assert path.read_bytes().endswith(b"}\n")
    assert not shard.receipt.exists()
    shard.run()
    assert [shard.runs(m) for m in sorted(finished)] == [1] * len(finished)
    assert shard.classes() == ROWS(range(1, 41), "row")


def test_a_disk_that_is_full_without_the_cases_own_files_is_not_its_failure(shard):
    shard.behave({2: ["fill_disk", "fill_disk", "fine"]})
    shard.plan(3)
    process = shard.start("import shutil; shutil.disk_usage = lambda _: shutil._ntuple_diskusage(0, 0, 0)")
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors.count("\n")) == (1, 1)
    assert "the disk is full" in errors
    assert list(shard.outcomes()) == [1]
    shard.run()
    assert shard.classes() == {1: "row", 2: "row", 3: "row"}


def test_a_process_that_outlives_its_killing_ends_the_attempt(shard):
    shard.behave({1: ["poison", "fine"]})
    shard.plan(2)
    process = shard.start(
        "from opatlas.harness import processes; processes.GONE_WAIT_S = 0.1; "
        "processes.descendants = lambda _: [4194999]"
    )
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors.count("\n")) == (1, 1)
    assert "does not end on SIGKILL; this node needs its administrator" in errors
    shard.run()
    assert shard.classes() == {1: "row", 2: "row"}


def test_eight_supervisors_at_once_mix_nothing_where_flock_always_succeeds(shard, new_shard, tmp_path):
    folders = [tmp_path / str(number) for number in range(8)]
    for folder in folders:
        folder.mkdir()
    shards = [new_shard(folder) for folder in folders]
    processes = []
    for one in shards:
        one.scratch = shard.scratch
        one.plan(6)
        processes.append(one.start("import fcntl; fcntl.flock = fcntl.lockf = lambda *_: None"))
    for one, process in zip(shards, processes, strict=True):
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "")
        assert one.classes() == ROWS(range(1, 7), "row")


def test_two_supervisors_on_one_ticket_yield_one_outcome_each(shard):
    shard.behave({}, seconds=0.02)
    shard.plan(10)
    processes = [shard.start(), shard.start()]
    for process in processes:
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "")
    assert shard.classes() == ROWS(range(1, 11), "row")
    rows = [record for record in shard.records() if record["record"] == "row"]
    journals = shard.read()
    assert len(journals.outcomes) + len(journals.superseded) == len(rows)
    assert shard.done()["rows"] == 10
