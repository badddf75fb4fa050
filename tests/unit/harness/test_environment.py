"""What a worker sees of the world outside: nothing that could change or leak into a measurement."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from opatlas.errors import UserError
from opatlas.harness import environment, linux


def seen(shard, **outer):
    """The environment of a worker, as a case sees it."""
    shard.behave({1: "shows_environment"})
    shard.environment.update(outer)
    shard.plan(1)
    shard.run()
    return dict(line.split("=", 1) for line in shard.log().splitlines() if "=" in line)


def test_no_cache_or_home_of_the_user_is_in_sight(shard, tmp_path):
    home = tmp_path / "home"
    (home / ".cache/flashinfer").mkdir(parents=True)
    (home / ".cache/flashinfer/lock").write_text("stale")
    names = {name: str(home / name) for name in (*environment.FOLDERS, "PYTHONSTARTUP", "HF_TOKEN", "VLLM_X")}
    inner = seen(shard, **{**names, "TMPDIR": str(shard.scratch)})
    assert [name for name, value in inner.items() if str(home) in value] == []
    for name in environment.FOLDERS:
        assert inner[name].startswith(f"{shard.scratch}/opatlas-")
    assert inner["HF_HUB_OFFLINE"] == inner["TRANSFORMERS_OFFLINE"] == "1"
    assert "HF_TOKEN" not in inner


def test_user_site_packages_do_not_shadow_the_framework(shard, tmp_path):
    version = f"python{'.'.join(map(str, sys.version_info[:2]))}"
    for module in ("json", "sitecustomize", "usercustomize"):
        path = tmp_path / f"home/.local/lib/{version}/site-packages/{module}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("raise SystemExit('shadowed')")
    seen(shard, PYTHONUSERBASE=str(tmp_path / "home/.local"), HOME=str(tmp_path / "home"))
    assert shard.classes() == {1: "row"}


def test_no_core_dumps_whatever_the_caller_allows(shard):
    shard.behave({1: "shows_environment", 2: "abort"})
    shard.plan(2)
    process = shard.start(
        "import resource as r; r.setrlimit(r.RLIMIT_CORE, (r.getrlimit(r.RLIMIT_CORE)[1],) * 2)"
    )
    process.communicate(timeout=30)
    assert shard.classes() == {1: "row", 2: "worker_died"}
    assert "core size=(0, 0)" in shard.log()


def test_own_variables_pass_and_the_record_has_no_secrets(shard):
    inner = seen(shard, OPATLAS_HINT="yes", OPATLAS_TOKEN="hidden")
    assert (inner["OPATLAS_HINT"], inner["OPATLAS_TOKEN"]) == ("yes", "hidden")
    (attempt,) = shard.read().attempts.values()
    assert attempt["environment"]["OPATLAS_HINT"] == "yes"
    assert "OPATLAS_TOKEN" not in attempt["environment"]


def test_in_an_image_its_own_variables_stay_and_the_users_go(tmp_path):
    outer = {"FLASHINFER_CUBIN_DIR": "/opt", "SLURM_JOB_ID": "1", "HF_TOKEN": "x", "PYTHONPATH": "/x"}
    image = environment.clean(outer, True, tmp_path)
    host = environment.clean(outer, False, tmp_path)
    assert image["FLASHINFER_CUBIN_DIR"] == "/opt"
    assert "FLASHINFER_CUBIN_DIR" not in host
    for inner in (image, host):
        assert not {"SLURM_JOB_ID", "HF_TOKEN"} & set(inner)
        assert inner["PYTHONPATH"] == str(Path(environment.__file__).parents[2])


def test_a_worker_that_broke_takes_its_caches_with_it(shard):
    """A half-written cache or a lock of a killed compiler would stop the next one."""
    shard.behave({1: "shows_environment", 2: ["segfault", "fine"], 3: "shows_environment"})
    shard.plan(3)
    shard.run()
    caches = [line for line in shard.log().splitlines() if line.startswith("TRITON_CACHE_DIR=")]
    assert len(set(caches)) == 2


def test_folders_of_dead_jobs_go_and_those_of_others_stay(tmp_path):
    dead = linux.identity().rsplit("-", 1)[0] + "-1"
    other_machine = "00000000.1-" + linux.identity().split("-", 1)[1]
    for name in (dead, other_machine, "atlas"):
        (tmp_path / f"opatlas-{name}").mkdir()
    with environment.scratch({"TMPDIR": str(tmp_path)}) as folder:
        environment.remove_leftovers({"TMPDIR": str(tmp_path)})
        assert folder.is_dir()
    assert {path.name for path in tmp_path.iterdir()} == {f"opatlas-{other_machine}", "opatlas-atlas"}


FOREIGN_USER = """
import ctypes, os, pathlib, pwd, sys
own = os.getuid()
if ctypes.CDLL(None).unshare(0x10000000) != 0:  # CLONE_NEWUSER
    sys.exit("no user namespaces")
pathlib.Path("/proc/self/uid_map").write_text(f"54321 {own} 1")
try:
    sys.exit(f"{pwd.getpwuid(os.getuid())} exists")
except KeyError:
    pass
"""


def test_a_user_id_without_a_passwd_entry(shard):
    shard.behave({1: "asks_for_user"})
    shard.plan(1)
    process = shard.start(FOREIGN_USER)
    _, errors = process.communicate(timeout=30)
    if "no user namespaces" in errors:
        pytest.skip("this machine has no user namespaces")
    assert process.returncode == 0, errors
    assert "user opatlas at " in shard.log()


def test_caches_begin_warm_where_that_is_asked_for(shard, tmp_path):
    warm = tmp_path / "warm"
    (warm / "deep_gemm/kernel").mkdir(parents=True)
    (warm / "deep_gemm/kernel/kernel.cubin").write_text("compiled")
    inner = environment.clean({"OPATLAS_WARM_CACHES": str(warm)}, False, tmp_path / "job")
    copied = Path(inner["DG_JIT_CACHE_DIR"]) / "kernel/kernel.cubin"
    assert copied.read_text() == "compiled"
    copied.write_text("changed")
    assert (warm / "deep_gemm/kernel/kernel.cubin").read_text() == "compiled"
    with pytest.raises(UserError, match="OPATLAS_WARM_CACHES: /none is not a folder"):
        environment.clean({"OPATLAS_WARM_CACHES": "/none"}, False, tmp_path / "job")
