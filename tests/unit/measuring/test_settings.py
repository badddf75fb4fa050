"""Settings from and to plain values."""

from __future__ import annotations

import pytest
from opatlas.measuring.settings import Settings


def test_round_trip():
    settings = Settings(budget_s=2.0, sustained=True)
    assert Settings.from_dict(settings.to_dict()) == settings
    assert Settings.from_dict({}) == Settings()
    assert Settings.from_dict({"budget_s": 2}).budget_s == 2.0


def test_every_wrong_key_and_type_is_named():
    with pytest.raises(ValueError, match=r"buget_s: there is no such.*; max_samples: expected int"):
        Settings.from_dict({"buget_s": 1.0, "max_samples": True})


def test_too_few_samples_for_an_interval_are_refused():
    with pytest.raises(ValueError, match="min_samples: expected 6 or more, found 5"):
        Settings(min_samples=5)
