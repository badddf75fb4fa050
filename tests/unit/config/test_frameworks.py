"""Pins: versions in the order of PEP 440, public ones alone (FIELD D2, D3)."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from opatlas.config import frameworks
from opatlas.errors import Problems, UserError

# What sorting as text gets wrong: 1.10 before 1.3, rc20 before rc9, a release before its candidates.
ORDER = ["1.3.0rc9", "1.3.0rc20", "1.3.0", "1.3.0.post1", "1.10.0rc1"]


def read(tmp_path: Path, *versions: str) -> frameworks.Frameworks:
    text = "torch:\n" + "".join(f'  "{version}": {{runtime: host}}\n' for version in versions)
    path = tmp_path / "frameworks.yaml"
    path.write_text(text, encoding="utf-8")
    problems = Problems()
    found = frameworks.load(path, "config/frameworks.yaml", problems)
    problems.raise_if_any()
    return found


def test_versions_are_listed_in_the_order_of_pep_440(tmp_path: Path) -> None:
    shuffled = ORDER.copy()
    random.Random(1).shuffle(shuffled)
    assert sorted(shuffled) != ORDER
    assert read(tmp_path, *shuffled).versions("torch") == ORDER


@pytest.mark.parametrize(
    ("version", "what"),
    [
        ("0.24.0+cu130", "name the public version, 0.24.0, without the suffix +cu130"),
        ("latest", "is not a version (PEP 440)"),
        ("1.3.0-rc20", "write the version in its normal form, 1.3.0rc20"),
    ],
)
def test_a_pin_is_the_public_version_in_its_normal_form(tmp_path: Path, version: str, what: str) -> None:
    with pytest.raises(UserError) as error:
        read(tmp_path, version)
    (line,) = str(error.value).splitlines()
    assert line.startswith("config/frameworks.yaml:2: torch.")
    assert what in line
