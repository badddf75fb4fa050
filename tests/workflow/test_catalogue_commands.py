"""`plan diff`, `draft` and `recheck` as commands, and the page that a new model is added by."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest
from support.project import REPOSITORY, STUB, Project

PAGE = (REPOSITORY / "docs" / "add-a-model.md").read_text(encoding="utf-8")
GEMMA = {
    "architectures": ["Gemma3ForConditionalGeneration"],
    "text_config": {
        "num_attention_heads": 32,
        "num_key_value_heads": 16,
        "head_dim": 128,
        "sliding_window": 1024,
    },
    "vision_config": {"hidden_size": 1152, "num_attention_heads": 16},
}
SECOND = """
stub/Second:
  architecture: StubForCausalLM
  backends: [stub]
  gemm:
    - {n: [960], k: [320]}
"""


@pytest.fixture
def versioned(fresh: Project) -> Project:
    """A copy that is a git repository, with everything committed."""
    git = ("git", "-c", "user.name=t", "-c", "user.email=t@example.org")
    for arguments in (("init", "-q"), ("add", "cases", "config"), ("commit", "-q", "-m", "All")):
        run = fresh.run(*git, *arguments)
        assert run.returncode == 0, run.output
    return fresh


def test_a_revision_against_the_working_tree(versioned: Project) -> None:
    same = versioned.opatlas("plan", "diff", "HEAD", ".", STUB)
    assert same.stdout == "0 cases added (about 0 s of device time), 0 removed, 0 changed\n"
    versioned.append("cases/models/stub.yaml", SECOND)
    versioned.edit("cases/models/stub.yaml", "n: [640, 1280]", "n: [640]")
    run = versioned.opatlas("plan", "diff", "HEAD", ".", f"results/{STUB}")
    assert run.returncode == 0, run.output
    gemm, *cases, total = run.stdout.splitlines()
    assert re.match(r"gemm: \d+ -> \d+ cases, 8 added \(\d+ s\), 8 removed \(\d+ s\), 0 changed$", gemm)
    assert cases[0].startswith("  + gemm/dtype=bfloat16/m=1/n=960/k=320")
    assert cases[-1] == "  and 6 more (--cases names them)"
    assert re.match(r"8 cases added \(about \d+ s of device time\), 8 removed, 0 changed$", total)
    every = versioned.opatlas("plan", "diff", "HEAD", ".", STUB, "--cases").stdout.splitlines()
    assert [sum(line.startswith(sign) for line in every) for sign in ("  + ", "  - ")] == [8, 8]
    back = versioned.opatlas("plan", "diff", ".", "HEAD", STUB, "--cases").stdout.splitlines()
    assert sorted(line.translate(str.maketrans("+-", "-+")) for line in back[1:-1]) == sorted(every[1:-1])


def test_two_datasets(fresh: Project) -> None:
    run = fresh.opatlas("plan", "diff", "torch/2.13.0/cpu", f"results/{STUB}")
    assert run.returncode == 0, run.output
    assert "  + gemm/dtype=bfloat16/m=1/n=640/k=320" in run.stdout
    assert re.search(r"^moe: \d+ -> \d+ cases, \d+ added", run.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("no-such-revision", ".", STUB), "no-such-revision: fatal: "),
        (("HEAD", ".", "stub/9/cpu"), "stub '9' has no pin in config/frameworks.yaml"),
        (("HEAD", "."), "results/HEAD: expected results/<backend>/<version>/<platform>"),
    ],
)
def test_what_cannot_be_compared(versioned: Project, arguments: tuple[str, ...], says: str) -> None:
    run = versioned.opatlas("plan", "diff", *arguments)
    assert (run.returncode, run.stdout) == (1, "")
    assert says in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "config.json: cannot be read: No such file"),
        ("{", "config.json: is not JSON"),
        ("[]", "config.json: expected a mapping"),
        ("{}", "architectures: is missing"),
    ],
)
def test_what_cannot_be_drafted(fresh: Project, content: str | None, says: str) -> None:
    if content is not None:
        fresh.path("config.json").write_text(content, encoding="utf-8")
    run = fresh.opatlas("draft", "config.json", "--name", "new/Model")
    assert (run.returncode, run.stdout) == (1, "")
    assert says in run.stderr
    assert "Traceback" not in run.stderr


def test_what_a_raised_pin_needs_checked_again(fresh: Project) -> None:
    skip = "\n- backend: stub\n  op: moe\n  where: {tokens: 64}\n  why: kills\n  reason: it hangs\n"
    line = fresh.path("cases/skips.yaml").read_text(encoding="utf-8").count("\n") + 2
    fresh.append("cases/skips.yaml", skip)
    fresh.append(
        "workflow/opatlas/backends/stub/moe.py", "\n# FIXME(kernel-limit): 8 heads, x.cu LIMIT, verified\n"
    )
    run = fresh.opatlas("recheck", "stub")
    assert run.returncode == 0, run.output
    first, second = run.stdout.splitlines()
    assert first == f"cases/skips.yaml:{line}: skip: it hangs"
    assert re.match(
        r"workflow/opatlas/backends/stub/moe\.py:\d+: limit: 8 heads, x\.cu LIMIT, verified", second
    )
    unknown = fresh.opatlas("recheck", "stup")
    assert unknown.returncode == 1
    assert "there is no backend 'stup'; known: " in unknown.stderr


def test_the_commands_for_a_new_model_as_the_page_writes_them(versioned: Project) -> None:
    drafted, completed, _ = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    draft, plan, diff, *_ = re.findall(r"^    (\S.*)$", re.sub(r"(?s)```.*?```", "", PAGE), re.MULTILINE)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def shell(command: str) -> str:
        run = versioned.run("bash", "-c", command, PATH=path)
        assert run.returncode == 0, run.output
        return run.output

    versioned.path("path/to").mkdir(parents=True)
    versioned.path("path/to/config.json").write_text(json.dumps(GEMMA), encoding="utf-8")
    shell(draft)
    entry = versioned.path("cases/models/gemma3.yaml")
    assert entry.read_text(encoding="utf-8") == drafted
    entry.write_text(completed, encoding="utf-8")
    assert "Plan of results/vllm/0.24.0/sm90" in shell(plan)
    added = dict(re.findall(r"^(\w+): \d+ -> \d+ cases, (\d+) added", shell(diff), re.MULTILINE))
    assert added == {op: count for count, op in re.findall(r"(\d+) of\s+(attention_\w+)", PAGE)}
