"""Drafts a model's entry from its config.json: the dimensions that it names, and nothing else.

Dimensions that a config leaves to its architecture are left out, with a remark where they belong. What is
no dimension (which precisions to plan, how the router picks experts) is for a person to fill in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from opatlas.errors import UserError

# Tensor-parallel sizes that a draft plans, as far as they divide the heads.
RANKS = (1, 2, 4, 8)


def draft(name: str, config: Mapping[str, Any]) -> str:
    """The text of an entry for cases/models/; UserError where the config names no shape to plan."""
    architectures = config.get("architectures")
    if not isinstance(architectures, list) or not architectures:
        raise UserError(f"config.json of {name}: architectures: is missing: expected a list of one name")
    text = config.get("text_config", config)
    if not isinstance(text, Mapping):
        raise UserError(f"config.json of {name}: text_config: expected a mapping, found {text!r}")
    lines = [line for part in (_attention, _linear, _mamba, _experts) for line in part(text)]
    lines += _encoder(config.get("vision_config") or {})
    if not any(line.startswith("  ") and not line.lstrip().startswith("#") for line in lines):
        raise UserError(f"config.json of {name}: names no attention, experts or recurrence to plan")
    return "\n".join([f"{name}:", f"  architecture: {architectures[0]}", *lines]) + "\n"


def _attention(config: Mapping[str, Any]) -> Iterator[str]:
    heads = config.get("num_attention_heads")
    if not _size(heads):
        return
    if _size(config.get("kv_lora_rank")):
        yield "  mla:"
        yield _record(
            heads=heads,
            kv_lora=config["kv_lora_rank"],
            rope=config.get("qk_rope_head_dim"),
            nope=config.get("qk_nope_head_dim"),
            v=config.get("v_head_dim"),
            tp=_ranks(heads),
        )
        kind = "dsa" if _size(config.get("index_topk")) else "mla"
        yield "  # The whole block; only one checkpoint of a family stands for its module rows."
        yield "  # attention_module:"
        module = _record(
            kind=kind,
            hidden=config.get("hidden_size"),
            heads=heads,
            tp=_ranks(heads),
            max_context=config.get("max_position_embeddings"),
            dtypes=["bfloat16"],
        )
        yield f"  #{module[2:]}"
        return
    head_dim = config.get("head_dim")
    if not _size(head_dim):
        # Every architecture that leaves it out splits its width evenly over the heads.
        head_dim = config["hidden_size"] // heads if _size(config.get("hidden_size")) else None
    windows = _windows(config)
    yield "  attention:"
    if windows and "layer_types" not in config:
        yield "  # The config does not say which layers have the window; 0 is full attention."
    kv_heads = config.get("num_key_value_heads", heads)
    yield _record(heads=heads, kv_heads=kv_heads, head_dim=head_dim, windows=windows, tp=_ranks(heads))


def _windows(config: Mapping[str, Any]) -> list[int] | None:
    """The windows of the layers; None where all attend to everything."""
    window, kinds = config.get("sliding_window"), config.get("layer_types")
    if not _size(window) or not config.get("use_sliding_window", True):
        return None
    if not isinstance(kinds, list):
        return [window]
    return sorted({window if "sliding" in str(kind) else 0 for kind in kinds if "attention" in str(kind)})


def _linear(config: Mapping[str, Any]) -> Iterator[str]:
    k_heads = config.get("linear_num_key_heads")
    if _size(k_heads):
        yield "  delta_rule:"
        yield _record(
            kind="gdn",
            d_model=config.get("hidden_size"),
            conv=config.get("linear_conv_kernel_dim"),
            k_heads=k_heads,
            k_dim=config.get("linear_key_head_dim"),
            v_heads=config.get("linear_num_value_heads"),
            v_dim=config.get("linear_value_head_dim"),
            tp=_ranks(k_heads),
        )


def _mamba(config: Mapping[str, Any]) -> Iterator[str]:
    if _size(config.get("mamba_num_heads")):
        yield "  mamba2:"
        yield _record(
            d_model=config.get("hidden_size"),
            state=config.get("ssm_state_size"),
            conv=config.get("conv_kernel"),
            heads=config["mamba_num_heads"],
            head_dim=config.get("mamba_head_dim"),
            groups=config.get("n_groups"),
            chunk=config.get("chunk_size"),
        )


def _experts(config: Mapping[str, Any]) -> Iterator[str]:
    experts = _first(config, "n_routed_experts", "num_experts", "num_local_experts")
    if _size(experts):
        yield "  moe:"
        yield "  # dtypes: the precisions of the checkpoint; routing and activation as moe cases name them."
        yield _record(
            hidden=config.get("hidden_size"),
            inter=_first(config, "moe_intermediate_size", "intermediate_size"),
            topk=_first(config, "num_experts_per_tok", "num_experts_per_token"),
            experts=experts,
        )


def _encoder(vision: Mapping[str, Any]) -> list[str]:
    heads, hidden = _first(vision, "num_attention_heads", "num_heads"), vision.get("hidden_size")
    if not _size(heads):
        return []
    head_dim = vision.get("head_dim", hidden // heads if _size(hidden) else None)
    return ["  encoder:", _record(heads=heads, head_dim=head_dim, tp=_ranks(heads))]


def _first(config: Mapping[str, Any], *keys: str) -> Any:
    return next((config[key] for key in keys if _size(config.get(key))), None)


def _ranks(heads: int) -> list[int]:
    return [tp for tp in RANKS if heads % tp == 0]


def _size(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _record(**fields: Any) -> str:
    """One record; a dimension that the config does not name is left open, and reading refuses it so."""
    known = {key: value for key, value in fields.items() if not (key == "windows" and value is None)}
    return "    - {" + ", ".join(f"{key}: {_text(value)}" for key, value in known.items()) + "}"


def _text(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(map(str, value)) + "]"
    return "MISSING" if value is None else str(value)
