"""From an attention case to its layer's parameters."""

from __future__ import annotations

import pytest
from opatlas.backends.vllm.shapes import Shape
from opatlas.ops.ids import parse_id

LAYER = "dtype=bfloat16/kv_dtype={}/heads=8/kv_heads=2/head_dim={}/window={}"


def shape(op, kv_dtype="bfloat16", head_dim=128, window=0, variant=""):
    point = "batch=2/isl=16" if op == "attention_context" else "batch=2/kv_len=16"
    end = f"/variant={variant}" if variant else ""
    _, case = parse_id(f"{op}/{LAYER.format(kv_dtype, head_dim, window)}/{point}{end}")
    return Shape.of(case)


def test_prefill_and_decode_of_one_layer_have_one_shape():
    assert shape("attention_context") == shape("attention_generation")
    assert shape("attention_context") == ("bfloat16", "bfloat16", 8, 2, 128, 0, "")


@pytest.mark.parametrize(
    ("given", "widths", "token_bytes"),
    [
        ({}, (1024, 256, 256), 1024),
        ({"kv_dtype": "fp8"}, (1024, 256, 256), 512),
        ({"head_dim": 192, "variant": "v128"}, (1536, 384, 256), 1280),
        ({"head_dim": 192, "variant": "v128+sinks", "kv_dtype": "fp8"}, (1536, 384, 256), 640),
    ],
)
def test_widths_and_bytes(given, widths, token_bytes):
    made = shape("attention_context", **given)
    assert made.widths == widths
    assert made.token_bytes == token_bytes


@pytest.mark.parametrize(
    ("given", "window"),
    [
        ({}, None),
        ({"head_dim": 256}, None),
        ({"window": 8192, "variant": "chunked"}, None),
        ({"window": 1024}, 0),
        ({"variant": "sinks", "head_dim": 64}, 128),
        ({"window": 128, "variant": "sinks", "head_dim": 64}, 0),
        ({"variant": "v128", "head_dim": 192}, 128),
        ({"head_dim": 512}, 128),
    ],
)
def test_layers_of_mixed_models_have_a_sibling_of_the_other_window(given, window):
    sibling = shape("attention_generation", **given).sibling
    assert (sibling.window if sibling else None) == window
