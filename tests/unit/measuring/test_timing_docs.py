"""docs/timing.md tells every setting with its default."""

from __future__ import annotations

import re
from pathlib import Path

from opatlas.measuring.settings import Settings

DOCS = Path(__file__).resolve().parents[3] / "docs" / "timing.md"


def test_every_setting_stands_in_the_docs_with_its_default():
    told = dict(re.findall(r"^\| `(\w+)` \| (\S+) \|", DOCS.read_text(), re.MULTILINE))
    assert told == {key: str(value).lower() for key, value in Settings().to_dict().items()}
