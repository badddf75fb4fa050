"""Fixtures of the workflow tests: copies of the project, fresh or with the stub's dataset published."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.project import Project, copy_project


@pytest.fixture(scope="session")
def _published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = copy_project(tmp_path_factory.mktemp("published") / "project")
    project.make()
    return project.root


@pytest.fixture
def fresh(tmp_path: Path) -> Project:
    """A copy in which nothing was ever run."""
    return copy_project(tmp_path / "project")


@pytest.fixture
def published(_published: Path, tmp_path: Path) -> Project:
    """A copy in which the stub's dataset is published."""
    root = tmp_path / "project"
    shutil.copytree(_published, root, symlinks=True)
    return Project(root)
