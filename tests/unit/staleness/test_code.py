"""What counts as a change of code: meaning, not looks, and the same on every Python."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from opatlas.staleness import code
from opatlas.staleness.code import source_hash

SAMPLE = Path(__file__).with_name("sample.txt")
# sha256 of SAMPLE as the walk reads it; any Python that gives another one would make rows stale.
SAMPLE_HASH = "f1fc24820a0261b02fc47b8938f751a16987ccc1041ec81c4488758bad5400fc"

BASE = '''
"""Docstring."""
import os

def scale(value: float, by: float = 2.0) -> float:
    """Says something."""
    # a comment
    return value * by
'''


@pytest.mark.parametrize(
    "same",
    [
        BASE.replace('"""Docstring."""', '"""Another."""'),
        BASE.replace('"""Docstring."""\n', ""),
        BASE.replace("    # a comment\n", "\n\n"),
        BASE.replace("value * by", "(\n        value\n        * by\n    )"),
        BASE.replace(
            "def scale(value: float, by: float = 2.0)",
            "def scale(\n    value: float,\n    by: float = 2.0,\n)",
        ),
        BASE.replace('    """Says something."""\n', ""),
    ],
)
def test_looks_do_not_count(same: str) -> None:
    assert same != BASE
    assert source_hash(same) == source_hash(BASE)


@pytest.mark.parametrize(
    "other",
    [
        BASE.replace("2.0", "3.0"),
        BASE.replace("2.0", "2"),
        BASE.replace("value * by", "by * value"),
        BASE.replace("import os", "import sys"),
        BASE.replace("scale", "scaled"),
        BASE + "scale(1)\n",
        BASE.replace("return value * by", "return 'text'"),
        BASE.replace("    return value * by", "    'text'\n    return value * by"),
    ],
)
def test_meaning_counts(other: str) -> None:
    assert source_hash(other) != source_hash(BASE)


def test_a_body_of_nothing_but_a_docstring_is_one_of_pass() -> None:
    assert source_hash('def f():\n    """Doc."""\n') == source_hash("def f():\n    pass\n")


def test_parts_of_a_text_may_be_written_apart() -> None:
    assert source_hash('x = f"a{y}" "b"\n') == source_hash('x = f"a{y}b"\n')
    assert source_hash('x = f"a{y}b"\n') != source_hash('x = f"a{y}c"\n')
    assert source_hash('x = f"{y:>5}"\n') != source_hash('x = f"{y:>6}"\n')


def test_the_hash_is_the_known_one() -> None:
    assert source_hash(SAMPLE.read_text(encoding="utf-8")) == SAMPLE_HASH


@pytest.mark.parametrize("version", ["3.10", "3.12", "3.13", "3.14"])
def test_the_hash_is_the_same_on_other_pythons(version: str) -> None:
    """Runs the walk itself under another interpreter, where one is installed."""
    python = shutil.which(f"python{version}")
    works = python and subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0
    if not python or not works:
        pytest.skip(f"python{version} is not installed here")
    program = (
        "import importlib.util, pathlib, sys, types\n"
        "package = types.ModuleType('opatlas'); errors = types.ModuleType('opatlas.errors')\n"
        "errors.UserError = type('UserError', (Exception,), {})\n"
        "sys.modules.update({'opatlas': package, 'opatlas.errors': errors})\n"
        "spec = importlib.util.spec_from_file_location('code', sys.argv[1])\n"
        "walk = importlib.util.module_from_spec(spec); spec.loader.exec_module(walk)\n"
        "print(walk.source_hash(pathlib.Path(sys.argv[2]).read_text(encoding='utf-8')))\n"
    )
    done = subprocess.run(
        [python, "-c", program, code.__file__, str(SAMPLE)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == SAMPLE_HASH


def test_a_runner_depends_on_itself_its_inputs_the_timer_and_the_worker() -> None:
    modules = code.worker_modules("torch", "gemm")
    for module in (
        "opatlas.backends.torch.gemm",
        "opatlas.backends.torch.runtime",
        "opatlas.ops.gemm.case",
        "opatlas.ops.gemm.inputs",
        "opatlas.measuring.sampling",
        "opatlas.harness.worker",
        "opatlas.harness.environment",
    ):
        assert module in modules


def test_a_runner_does_not_depend_on_planning_tables_or_other_ops() -> None:
    modules = code.worker_modules("torch", "gemm")
    for module in modules:
        assert not module.startswith(
            ("opatlas.planning", "opatlas.tables", "opatlas.checks", "opatlas.publishing", "opatlas.config")
        ), module
    assert "opatlas.ops.gemm.op" not in modules
    assert "opatlas.backends.torch.moe" not in modules
    assert "opatlas.ops.moe.inputs" not in modules


def test_every_module_of_the_harness_is_either_hashed_or_declared_harmless() -> None:
    folder = Path(code.FOLDER) / "harness"
    names = {f"opatlas.harness.{path.stem}" for path in folder.glob("*.py") if path.stem != "__init__"}
    hashed = set(code.worker_modules("torch", "gemm"))
    assert names - code.HARNESS - hashed == set()
    assert code.HARNESS & hashed == set()
    assert {name for name in code.HARNESS if ".harness." in name} <= names


@pytest.mark.parametrize("op", ["gemm", "attention_context", "attention_generation", "moe"])
def test_what_a_worker_really_imports_is_what_the_walk_finds(op: str) -> None:
    """Imports the worker's roots in a fresh process and compares with the walk."""
    pytest.importorskip("torch")
    roots = code.roots("torch", op)
    program = (
        f"import importlib, sys\nfor name in {roots!r}: importlib.import_module(name)\n"
        "print('\\n'.join(m for m in sys.modules if m == 'opatlas' or m.startswith('opatlas.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(code.FOLDER.parent), "PATH": "/usr/bin:/bin"},
    )
    imported = set(done.stdout.split())
    known = set(code.worker_modules("torch", op)) | code.HARNESS
    assert imported - known == set()
