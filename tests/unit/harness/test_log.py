"""The log of an attempt stays below its limit."""

from __future__ import annotations

import os

from opatlas.harness import log


def test_a_log_that_grew_too_long_is_cut_and_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(log, "LIMIT", 1000)
    monkeypatch.setattr(log, "KEPT", 100)
    path = tmp_path / "attempt-a.log"
    own = log.Log(path)
    os.write(own.fd, b"x" * 900)
    own.tick()
    assert path.stat().st_size == 900
    os.write(own.fd, b"y" * 900)
    own.tick()
    os.write(own.fd, b"the end")
    own.close()
    text = path.read_text()
    assert text.startswith("x" * 100 + "[opatlas] ")
    assert text.endswith("the log is cut\nthe end")
