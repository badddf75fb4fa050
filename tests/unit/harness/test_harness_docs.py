"""docs/harness.md names what there is."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from opatlas.harness import failures, supervisor
from opatlas.harness.ticket import Limits

TEXT = (Path(__file__).parents[3] / "docs/harness.md").read_text()


@pytest.mark.parametrize("name", failures.CLASSES)
def test_every_failure_class_has_its_line(name):
    assert f"| `{name}` |" in TEXT


@pytest.mark.parametrize("field", fields(Limits), ids=lambda field: field.name)
def test_every_limit_is_told(field):
    assert f"`{field.name}`" in TEXT


@pytest.mark.parametrize("status", [supervisor.EXIT_REFUSED, supervisor.EXIT_USAGE, supervisor.EXIT_STOPPED])
def test_every_exit_status_has_its_line(status):
    assert f"| {status} |" in TEXT
