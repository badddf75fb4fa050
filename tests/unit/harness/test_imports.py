"""The harness runs in any image: it imports the standard library and this project, and nothing else."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest
from opatlas import harness

FILES = sorted(Path(harness.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_only_the_standard_library(path):
    imported = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").split(".")[0])
    assert imported - sys.stdlib_module_names - {"opatlas"} == set()
