"""What is concluded from SLURM's answers, and from their absence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from opatlas.cluster import queue
from opatlas.cluster.states import Job
from opatlas.errors import UserError


class Tools:
    """Answers for squeue, sacct and sinfo: lines, or a failure."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **answers: list[str] | UserError) -> None:
        self.answers = answers
        self.asked: list[str] = []
        monkeypatch.setattr(queue, "ask", self.ask)

    def ask(self, command: Sequence[str]) -> list[str]:
        self.asked.append(command[0])
        answer = self.answers[command[0]]
        if isinstance(answer, UserError):
            raise answer
        return answer


DOWN = UserError("squeue failed (exit 1): it said Unable to contact slurm controller")
DISABLED = UserError("sacct failed (exit 1): it said Slurm accounting storage is disabled")


def test_only_asked_for_jobs_are_read_and_steps_left_out() -> None:
    lines = ["7|CANCELLED by 1000|None|n1", "7.batch|COMPLETED||n1", "8|PENDING|Resources|"]
    assert queue.parse(lines, ["7"]) == {"7": Job("CANCELLED", "None", "n1")}


def test_accounting_is_preferred_where_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    Tools(monkeypatch, sacct=[], squeue=[])
    assert queue.preflight(None) == ("sacct", "SLURM jobs are followed by sacct")
    assert queue.preflight("squeue")[0] == "squeue"


def test_without_accounting_squeue_is_used_and_it_is_said_why(monkeypatch: pytest.MonkeyPatch) -> None:
    Tools(monkeypatch, sacct=DISABLED, squeue=[])
    tool, sentence = queue.preflight(None)
    assert tool == "squeue"
    assert "accounting storage is disabled" in sentence


def test_with_neither_the_run_is_refused_with_both_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    Tools(monkeypatch, sacct=DISABLED, squeue=DOWN)
    with pytest.raises(UserError, match=r"disabled.*Unable to contact"):
        queue.preflight(None)


def test_one_absence_means_nothing_and_two_that_the_job_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    tools = Tools(monkeypatch, squeue=["7|RUNNING|None|n1"])
    watch = queue.Watch("squeue", pytest.fail)
    assert watch.look(["7"]) == {"7": Job("RUNNING", "None", "n1")}
    tools.answers["squeue"] = []
    assert watch.look(["7"]) == {}
    assert watch.look(["7"]) == {"7": None}


def test_a_failing_question_says_nothing_about_jobs_and_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tools = Tools(monkeypatch, squeue=DOWN)
    said: list[str] = []
    watch = queue.Watch("squeue", said.append)
    assert [watch.look(["7"]) for _ in range(8)] == [{}] * 8
    assert len(said) == 1
    assert "Unable to contact" in said[0]
    tools.answers["squeue"] = ["7|COMPLETED|None|n1"]
    assert watch.look(["7"]) == {"7": Job("COMPLETED", "None", "n1")}
    assert len(said) == 2


def test_a_job_that_accounting_lacks_is_asked_of_the_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    Tools(monkeypatch, sacct=["7|COMPLETED|None|n1"], squeue=["8|PENDING|Resources|"])
    watch = queue.Watch("sacct", pytest.fail)
    assert watch.look(["7", "8"]) == {
        "7": Job("COMPLETED", "None", "n1"),
        "8": Job("PENDING", "Resources", ""),
    }


def test_when_accounting_goes_down_the_controller_is_asked_from_then_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tools = Tools(monkeypatch, sacct=DISABLED, squeue=["7|RUNNING|None|n1"])
    said: list[str] = []
    watch = queue.Watch("sacct", said.append)
    for _ in range(3):
        assert watch.look(["7"]) == {"7": Job("RUNNING", "None", "n1")}
    assert len(said) == 1
    assert tools.asked.count("sacct") == 1


def test_jobs_of_an_earlier_run_are_known_by_folder_and_comment(monkeypatch: pytest.MonkeyPatch) -> None:
    receipt = "results/attempts/torch/2.11.0/sm90/gemm/s-1/a.done.json"
    text = queue.comment("gemm", "s-1", "torch/2.11.0/sm90", receipt)
    lines = [f"12|/tree|{text}", f"9|/tree|{text}", f"10|/other|{text}", "11|/tree|(null)", "13|/tree|"]
    Tools(monkeypatch, squeue=lines)
    assert queue.in_flight(Path("/tree")) == [
        queue.InFlight("9", Path(receipt)),
        queue.InFlight("12", Path(receipt)),
    ]
