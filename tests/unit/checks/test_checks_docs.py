"""docs/checks.md lists every check with its severities and thresholds."""

from __future__ import annotations

import re
from pathlib import Path

from opatlas.checks.run import CHECKS
from opatlas.config import checks

DOCS = Path(__file__).resolve().parents[3] / "docs" / "checks.md"


def rows() -> list[list[str]]:
    lines = re.findall(r"^\| (`.*) \|$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    return [[cell.strip() for cell in line.split(" | ")] for line in lines]


def test_every_check_stands_in_the_docs_with_severities_and_thresholds() -> None:
    told = {row[0].strip("`"): (set(row[1].split(", ")), re.findall(r"`([^`]+)`", row[4])) for row in rows()}
    assert told == {name: (set(check.severities), list(check.keys)) for name, check in CHECKS.items()}
    assert list(told) == list(CHECKS)


def test_every_threshold_belongs_to_a_check() -> None:
    assert sorted(key for check in CHECKS.values() for key in check.keys) == sorted(checks.keys())
