"""A user's mistake ends in one clear message that names file and key, a non-zero exit and no traceback."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from support.project import STUB, TARGET, Project, Run

HEX = "0" * 64


@dataclass(frozen=True)
class Mistake:
    name: str
    make: Callable[[Project], None]
    says: tuple[str, ...]
    target: str = TARGET
    arguments: tuple[str, ...] = ()


def append(name: str, text: str) -> Callable[[Project], None]:
    return lambda project: project.append(name, text)


def edit(name: str, old: str, new: str) -> Callable[[Project], None]:
    return lambda project: project.edit(name, old, new)


def no_edit(project: Project) -> None:
    pass


PINS, PLATFORMS, CONFIG = "config/frameworks.yaml", "config/platforms.yaml", "config/config.yaml"
MISTAKES = [
    Mistake(
        "unknown backend",
        no_edit,
        ("no backend 'vlm'", "results/vllm/0.24.0/sm90"),
        "results/vlm/0.24.0/sm90",
    ),
    Mistake("unknown version", no_edit, ("'0.25.0' has no pin", PINS), "results/vllm/0.25.0/sm90"),
    Mistake("unknown platform", no_edit, ("no platform 'sm91'", PLATFORMS), "results/vllm/0.24.0/sm91"),
    Mistake(
        "platform of another pin", no_edit, ("not pinned for the platform sm90",), "results/stub/1.0.0/sm90"
    ),
    Mistake(
        "a size beyond 64 bit in a model file",
        edit("cases/models/stub.yaml", "n: [640, 1280]", f"n: [640, {2**64}]"),
        ("cases/models/stub.yaml:", "stub/Tiny.gemm[0].n", "at most 4294967295"),
    ),
    Mistake(
        "a size beyond 64 bit in a grid",
        edit("cases/ops/gemm.yaml", "[1, 2, 3,", f"[1, 2, {2**63},"),
        ("cases/ops/gemm.yaml:", "tokens", "at most 4294967295"),
    ),
    Mistake(
        "no token in a grid",
        edit("cases/ops/gemm.yaml", "[1, 2, 3,", "[0, 2, 3,"),
        ("cases/ops/gemm.yaml:", "tokens", "at least 1"),
    ),
    Mistake(
        "a measurement setting without end",
        edit(CONFIG, "measure: {}", "measure: {budget_s: .inf}"),
        (CONFIG, "measure", "budget_s"),
    ),
    Mistake("subset not asked for", no_edit, ("subset=NAME",), f"{TARGET}@mine"),
    Mistake(
        "unquoted version", append(PINS, "\nnew:\n  0.20: {runtime: host}\n"), (PINS, "new.0.2", "in quotes")
    ),
    Mistake("version without a pin", append(PINS, '\nnew:\n  "1.0":\n'), (PINS, "new.1.0", "has no image")),
    Mistake(
        "unpinned tag",
        append(PINS, '\nnew:\n  "1.0": {image: "a/b:latest"}\n'),
        (PINS, "new.1.0.image", "sha256:"),
    ),
    Mistake(
        "tag and digest",
        append(PINS, f'\nnew:\n  "1.0": {{image: "a/b:v1@sha256:{HEX}"}}\n'),
        (PINS, "without a tag"),
    ),
    Mistake(
        "local version", append(PINS, '\nnew:\n  "1.0+cu130": {runtime: host}\n'), (PINS, "public version")
    ),
    Mistake(
        "no version", append(PINS, "\nnew:\n  latest: {runtime: host}\n"), (PINS, "new.latest", "PEP 440")
    ),
    Mistake(
        "misspelt key", append(PINS, '\nnew:\n  "1.0": {runtme: host}\n'), (PINS, "did you mean runtime?")
    ),
    Mistake(
        "platform without partition",
        edit(PLATFORMS, "partition: h200, ", ""),
        (PLATFORMS, "sm90.slurm.partition"),
    ),
    Mistake("platform without slurm", append(PLATFORMS, "\nsm70:\n  sm: 70\n"), (PLATFORMS, "sm70.slurm")),
    Mistake(
        "malformed YAML", append(PLATFORMS, "\ncpu2: {a: [1, 2}\n"), (PLATFORMS, "not valid YAML", "line")
    ),
    Mistake("key twice", append(PLATFORMS, "\ncpu: {}\n"), (PLATFORMS, "'cpu' stands twice")),
    Mistake("wrong type", edit(CONFIG, "seed: 1", "seed: one"), (CONFIG, "seed", "whole number")),
    Mistake(
        "unknown setting", edit(CONFIG, "measure: {}", "measure: {min_sample: 3}"), (CONFIG, "min_sample")
    ),
    Mistake("missing file", lambda project: project.path(CONFIG).unlink(), (CONFIG, "no such file")),
    Mistake("subset without a name", no_edit, ("subset=NAME", "ops"), TARGET, ("--config", "ops=gemm")),
    Mistake(
        "unknown op in a subset",
        no_edit,
        ("--config ops", "'gem'", "did you mean gemm?"),
        f"{TARGET}@x",
        ("--config", "subset=x", "ops=gem"),
    ),
    Mistake(
        "unknown model in a subset",
        no_edit,
        ("--config models", "typo"),
        f"{TARGET}@x",
        ("--config", "subset=x", "models=typo"),
    ),
    Mistake(
        "subset of nothing",
        no_edit,
        ("no case",),
        f"{TARGET}@x",
        ("--config", "subset=x", "cases=m=12345"),
    ),
    Mistake("bad condition", no_edit, ("tp=4",), f"{TARGET}@x", ("--config", "subset=x", "cases=m<8")),
    Mistake(
        "number as version in --config",
        no_edit,
        ("subset", "quotes"),
        TARGET,
        ("--config", "subset=0.20", "limit=3"),
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_is_one_clear_message(fresh: Project, mistake: Mistake) -> None:
    mistake.make(fresh)
    run = fresh.snakemake("-n", mistake.target, *mistake.arguments)
    assert_clear(run)
    for words in mistake.says:
        assert words in run.output, run.output
    assert not fresh.path("results").exists()


def assert_clear(run: Run) -> None:
    assert run.returncode != 0
    assert "Traceback" not in run.output, run.output
    assert 'File "' not in run.output, run.output
    assert "Exception" not in run.output.replace("InputFunctionException", ""), run.output


def test_all_mistakes_of_all_files_show_at_once(fresh: Project) -> None:
    fresh.append(PINS, '\nnew:\n  "1.0": {image: "a/b:latest"}\n  "x": {runtime: hst}\n')
    fresh.edit(CONFIG, "seed: 1", "seed: one")
    fresh.edit(PLATFORMS, "partition: h200, ", "")
    run = fresh.snakemake("-n", TARGET)
    assert_clear(run)
    for words in ("new.1.0.image", "new.x", "new.x.runtime", "seed", "sm90.slurm.partition"):
        assert words in run.output


def test_a_shard_of_no_plan_is_named(fresh: Project) -> None:
    target = f"results/shards/{STUB}/gemm/s-0123456789abcdef.parquet"
    run = fresh.snakemake("-n", target)
    assert_clear(run)
    assert "no current plan has this shard" in run.output


def test_the_installed_framework_must_be_the_pinned_one(fresh: Project) -> None:
    """The stub says that it is another version than its pin: refused before any case, nothing published."""
    fresh.edit(PINS, '"1.0.0":', '"1.2.0":')
    run = fresh.snakemake("results/stub/1.2.0/cpu")
    assert run.returncode != 0
    assert "1.2.0" in run.output
    assert "1.0.0" in run.output
    assert fresh.measured() == 0
    assert not fresh.path("results/stub").exists() or not list(
        fresh.path("results/stub").rglob("provenance.json")
    )


def test_without_a_target_the_known_datasets_are_listed(fresh: Project) -> None:
    run = fresh.make("help")
    assert "results/vllm/0.24.0/sm90" in run.output
    bare = fresh.snakemake()
    assert TARGET in bare.output


@pytest.mark.parametrize("target", ["results/nonsense", "results/stub/1.0.0", f"./{TARGET}x"])
def test_a_misspelt_target_lists_the_known_ones(fresh: Project, target: str) -> None:
    run = fresh.snakemake("-n", target)
    assert_clear(run)
    assert TARGET in run.output
