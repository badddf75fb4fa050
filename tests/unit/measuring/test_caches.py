"""Autotune caches that differ give hashes that differ (FIELD M18)."""

from __future__ import annotations

from opatlas.measuring.caches import cache_hashes


def test_two_caches_two_hashes(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, choice in ((first, "tile 64"), (second, "tile 128")):
        (folder / "gemm").mkdir(parents=True)
        (folder / "gemm" / "best.json").write_text(choice)
    (tmp_path / "new").mkdir()
    seen = [cache_hashes({"TRITON_CACHE_DIR": str(f)}) for f in (first, second, tmp_path / "new")]
    assert seen[0] != seen[1]
    assert seen[2] == {"TRITON_CACHE_DIR": "empty"}
    assert cache_hashes({"TRITON_CACHE_DIR": str(tmp_path / "missing")}) == seen[2]
    assert cache_hashes({}) == {}


def test_a_copy_elsewhere_has_the_same_hash(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "best.json").write_text("tile 64")
    a, b = (cache_hashes({"XDG_CACHE_HOME": str(tmp_path / name)}) for name in ("a", "b"))
    assert a == b
