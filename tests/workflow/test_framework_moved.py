"""What a framework moved is told before anything is measured."""

from __future__ import annotations

import pytest
from support.project import TARGET, Project

USES = 'PACKAGE = "framework"\nUSES = (("framework.kernels:run", 1, "scale"),)\n'
KERNELS = "def run(x, scale): ...\n"


@pytest.fixture
def resting(fresh: Project) -> Project:
    """The stub backend, resting on a framework of which it uses one function."""
    fresh.path("workflow/opatlas/backends/stub/uses.py").write_text(USES)
    fresh.path("workflow/framework").mkdir()
    fresh.path("workflow/framework/__init__.py").write_text("")
    fresh.path("workflow/framework/kernels.py").write_text(KERNELS)
    return fresh


def test_the_check_is_the_first_step_of_a_dataset_and_is_made_once(resting: Project) -> None:
    assert resting.make().jobs["check_interface"] == 1
    assert "1 uses of framework fit" in "".join(
        path.read_text() for path in resting.path("results/logs/interface").rglob("*.log")
    )
    resting.edit("workflow/opatlas/backends/stub/gemm_helper.py", "SCALE = 1.0", "SCALE = 2.0")
    jobs = resting.make().jobs
    assert jobs["measure_shard"] > 0
    assert jobs["check_interface"] == 1
    assert resting.make().jobs == {}


@pytest.mark.parametrize(
    ("kernels", "message"),
    [
        ("def launch(x, scale): ...\n", "framework.kernels:run is gone"),
        ("def run(x, factor): ...\n", "framework.kernels:run takes no 'scale'"),
        ("def run(x, scale, out): ...\n", "framework.kernels:run needs 'out' too"),
    ],
)
def test_nothing_is_measured_with_a_framework_that_moved(
    resting: Project, kernels: str, message: str
) -> None:
    resting.path("workflow/framework/kernels.py").write_text(kernels)
    run = resting.snakemake(TARGET)
    assert run.returncode != 0
    assert f"workflow/opatlas/backends/stub/uses.py: framework.kernels:run: {message}" in run.output
    assert resting.measured() == 0
    assert "Traceback" not in run.output
    resting.path("workflow/framework/kernels.py").write_text(KERNELS)
    assert resting.make().jobs["check_interface"] == 1


def test_a_backend_that_declares_nothing_is_not_checked(fresh: Project) -> None:
    assert "check_interface" not in fresh.make().jobs
