"""What a shard's job asks for."""

from __future__ import annotations

from opatlas.cluster.resources import START_MINUTES, request, warning_s
from opatlas.config.platforms import Slurm

H200 = Slurm("h200", "gpu:h200:1", 8, 65536)


def test_time_grows_with_the_work_and_with_each_attempt() -> None:
    assert request(H200, 0, 1, 1)["runtime"] == START_MINUTES
    assert request(H200, 1200, 1, 1)["runtime"] == START_MINUTES + 40
    assert request(H200, 1200, 1, 3)["runtime"] == 3 * (START_MINUTES + 40)


def test_a_site_s_limit_is_never_exceeded() -> None:
    assert request(Slurm("h200", "gpu:h200:1", 8, 65536, max_minutes=30), 1200, 1, 4)["runtime"] == 30


def test_a_shard_over_several_devices_asks_for_them() -> None:
    assert request(H200, 1, 8, 1)["gres"] == "gpu:h200:8"
    assert request(Slurm("gpu", "gpu:1", 8, 65536), 1, 16, 1)["gres"] == "gpu:16"


def test_account_and_qos_are_asked_for_where_they_are_given() -> None:
    assert request(H200, 1, 1, 1)["slurm_account"] is None
    given = request(Slurm("h200", "gpu:h200:1", 8, 65536, "atlas", "night"), 1, 1, 1)
    assert (given["slurm_account"], given["qos"]) == ("atlas", "night")


def test_a_platform_without_slurm_asks_for_nothing() -> None:
    assert not any(request(None, 100, 1, 2).values())


def test_the_warning_leaves_a_short_job_most_of_its_time() -> None:
    assert warning_s(60) == 120
    assert warning_s(1) == 20
