"""No hub is asked: workers are offline with an empty cache, and what is not declared fails in planning."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from opatlas.errors import UserError
from opatlas.harness import environment
from opatlas.planning.dataset import load

ROOT = Path(__file__).resolve().parents[4]


def test_a_worker_is_offline_and_its_hub_cache_is_its_own(tmp_path):
    outer = {**os.environ, "HF_HOME": "/shared/hub", "HF_TOKEN": "x", "HF_HUB_OFFLINE": "0"}
    for image in (False, True):
        clean = environment.clean(outer, image, tmp_path)
        assert clean["HF_HUB_OFFLINE"] == clean["TRANSFORMERS_OFFLINE"] == "1"
        assert clean["HF_HOME"].startswith(str(tmp_path))
        assert not list(Path(clean["HF_HOME"]).iterdir())
        assert "HF_TOKEN" not in clean


def test_a_model_that_is_not_declared_fails_in_planning():
    with pytest.raises(UserError, match="there is no 'Qwen/Qwen9-1T' in this plan"):
        load(ROOT, "vllm/0.24.0/sm90@one", {"subset": "one", "models": "Qwen/Qwen9-1T"})
