"""The steps of docs/add-a-model.md, with the model that they are about."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from opatlas.catalogue.draft import draft
from opatlas.planning.diff import compare

PAGE = (Path(__file__).parents[3] / "docs" / "add-a-model.md").read_text()
DRAFT, ENTRY, _ = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
CONFIG = {
    "architectures": ["Gemma3ForConditionalGeneration"],
    "text_config": {
        "hidden_size": 5376,
        "intermediate_size": 21504,
        "num_attention_heads": 32,
        "num_key_value_heads": 16,
        "head_dim": 128,
        "sliding_window": 1024,
    },
    "vision_config": {"hidden_size": 1152, "num_attention_heads": 16},
}


def test_the_draft_is_what_the_page_shows():
    assert draft("google/gemma-3-27b-it", CONFIG) == DRAFT


@pytest.mark.parametrize("name", ["vllm/0.24.0/sm90"])
def test_the_entry_adds_what_the_page_says(desk, copy, name):
    ops = ["attention_context", "attention_generation", "encoder_attention", "gemm"]
    added = copy.write("cases/models/gemma3.yaml", ENTRY)
    found = {diff.op: diff for diff in compare(desk.plan(name, ops), added.plan(name, ops))}
    counts = re.findall(r"(\d+) of\s+attention_(context|generation)", PAGE)
    assert {f"attention_{phase}": int(count) for count, phase in counts} == {
        op: len(diff.added) for op, diff in found.items() if diff.added
    }
    assert not any(diff.removed or diff.changed for diff in found.values())
