"""Drafts of model entries from config.json files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from opatlas.catalogue import load as catalogue
from opatlas.catalogue.draft import draft
from opatlas.errors import UserError

REPOSITORY = Path(__file__).parents[3]
MOE = {
    "architectures": ["Qwen3MoeForCausalLM"],
    "hidden_size": 2048,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "moe_intermediate_size": 768,
    "num_experts": 128,
    "num_experts_per_tok": 8,
}
LATENT = {
    "architectures": ["NewDsaForCausalLM"],
    "hidden_size": 6144,
    "num_attention_heads": 64,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "index_topk": 2048,
    "max_position_embeddings": 202752,
}


def facts(config, name="new/Model"):
    (entry,) = yaml.safe_load(draft(name, config)).values()
    return entry


def test_dimensions_that_the_config_names():
    entry = facts(MOE)
    assert entry == {
        "architecture": "Qwen3MoeForCausalLM",
        "attention": [{"heads": 32, "kv_heads": 4, "head_dim": 128, "tp": [1, 2, 4, 8]}],
        "moe": [{"hidden": 2048, "inter": 768, "topk": 8, "experts": 128}],
    }


@pytest.mark.parametrize("config", [MOE, LATENT])
def test_a_draft_of_a_whole_config_can_be_planned(tmp_path, config):
    shutil.copytree(REPOSITORY / "cases", tmp_path / "cases")
    (tmp_path / "cases/models/new.yaml").write_text(draft("new/Model", config))
    assert "new/Model" in {model.name for model in catalogue.load(tmp_path).models}


def test_what_a_config_leaves_out_is_refused_where_it_is_missing(tmp_path):
    shutil.copytree(REPOSITORY / "cases", tmp_path / "cases")
    text = draft("new/Model", {key: value for key, value in MOE.items() if key != "num_experts_per_tok"})
    (tmp_path / "cases/models/new.yaml").write_text(text)
    with pytest.raises(UserError, match=r"new.yaml:\d+: new/Model.moe\[0\].topk: expected a whole number"):
        catalogue.load(tmp_path)


def test_other_kinds_of_layers():
    assert facts(LATENT)["mla"] == [
        {"heads": 64, "kv_lora": 512, "rope": 64, "nope": 128, "v": 128, "tp": [1, 2, 4, 8]}
    ]
    assert "kind: dsa" in draft("new/Model", LATENT)
    hybrid = {
        "architectures": ["HybridForCausalLM"],
        "text_config": {
            "hidden_size": 4096,
            "num_attention_heads": 24,
            "num_key_value_heads": 4,
            "head_dim": 256,
            "sliding_window": 512,
            "layer_types": ["linear_attention", "full_attention", "sliding_attention"],
            "linear_num_key_heads": 16,
            "linear_key_head_dim": 128,
            "linear_num_value_heads": 32,
            "linear_value_head_dim": 128,
            "linear_conv_kernel_dim": 4,
        },
        "vision_config": {"num_heads": 16, "hidden_size": 1152},
    }
    entry = facts(hybrid)
    assert entry["attention"][0]["windows"] == [0, 512]
    assert entry["delta_rule"][0]["v_heads"] == 32
    assert entry["encoder"] == [{"heads": 16, "head_dim": 72, "tp": [1, 2, 4, 8]}]
    mamba = facts(
        {
            "architectures": ["NemotronHForCausalLM"],
            "hidden_size": 4096,
            "mamba_num_heads": 128,
            "mamba_head_dim": 64,
            "ssm_state_size": 128,
            "n_groups": 8,
            "chunk_size": 128,
            "conv_kernel": 4,
        }
    )
    assert mamba["mamba2"][0]["state"] == 128


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "architectures: is missing"),
        ({"architectures": ["A"]}, "names no attention, experts or recurrence"),
        ({"architectures": ["A"], "text_config": 3}, "text_config: expected a mapping"),
    ],
)
def test_a_config_without_shapes_is_an_error(config, message):
    with pytest.raises(UserError, match=message):
        draft("new/Model", config)
