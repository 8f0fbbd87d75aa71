"""What a config says of attention and norms: heads, scale, position, epsilon.

Configs use several words for one thing, and some architectures do otherwise: tables from transformers' code.
"""

from __future__ import annotations

from typing import Any

from isoscope.errors import IsoscopeError
from isoscope.models.weights.names import Tower

HEADS = ("num_attention_heads", "n_head", "num_heads", "n_heads", "encoder_attention_heads", "heads", "nhead")
_KEY_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num", "kv_n_heads")
_EPSILONS = (
    "rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_eps", "layernorm_epsilon", "norm_epsilon",
)  # fmt: skip
_OWN_EPSILON = {"distilbert": 1e-12, "segformer": 1e-5, "cvt": 1e-5}  # written in the code, not the config
_ROOT_MEAN_SQUARE = (
    "t5", "mt5", "umt5", "longt5", "switch_transformers", "pop2piano", "udop", "pix2struct", "manta",
)  # fmt: skip
_UNSCALED = (  # the score is q·k as it is
    *_ROOT_MEAN_SQUARE, "gpt_neo", "gemma3n", "gemma4", "embedding_gemma2", "diffusion_gemma", "dia",
)  # fmt: skip

_PLUS_ONE = (  # the norm multiplies by 1 + weight
    "gemma", "gemma2", "gemma3", "gemma3_text", "recurrent_gemma", "t5gemma", "t5gemma2", "vaultgemma",
    "nemotron", "qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text",
)  # fmt: skip
_RELATIVE = "a bias of relative position"
_POSITION_BIAS = {
    **dict.fromkeys(("t5", "mt5", "umt5", "longt5", "manta", "swin", "swinv2"), _RELATIVE),
    **dict.fromkeys(("bloom", "mpt"), "ALiBi"),
    **dict.fromkeys(("deberta", "deberta-v2"), "terms of relative position"),
    "xlnet": "terms of relative position and segment", "wavlm": "a gated bias of relative position",
}  # fmt: skip


def said(config: Any, *names: str) -> Any:
    """The first of these settings that the config has; None where it has none."""
    return next((found for name in names if (found := getattr(config, name, None)) is not None), None)


def kind_of(config: Any) -> str:
    """The kind of model the config is of."""
    return str(getattr(config, "model_type", "") or "")


def part_for(config: Any, tower: Tower | None) -> Any:
    """The part of a config of several models that speaks of this tower."""
    stem = tower.stem if tower is not None else ""
    words = {
        "vision_config": ("vision", "visual"),
        "audio_config": ("audio",),
        "text_config": ("text", "lang"),
    }
    for name, parts in words.items():
        if any(word in stem for word in parts) and (found := said(config, name)) is not None:
            return found
    for name in ("encoder", "decoder"):
        if stem.startswith(f"{name}.") and hasattr(found := said(config, name), "model_type"):
            return found
    return config if said(config, *HEADS) is not None else said(config, "text_config") or config


def heads_of(config: Any, tower: Tower, stage: int) -> int | None:
    """How many query heads; of this stage where each has its own number; None where it does not say."""
    names = ("decoder_attention_heads", *HEADS) if tower.decoder else HEADS
    found = said(config, *names)
    if isinstance(found, list | tuple):
        found = found[stage] if stage < len(found) else None
    return int(found) if isinstance(found, int) else None


def key_heads_of(config: Any, heads: int) -> int:
    """How many key heads a fused weight holds."""
    kind = kind_of(config)
    if kind == "gpt_bigcode" or (kind == "falcon" and not said(config, "new_decoder_architecture")):
        return 1 if said(config, "multi_query") else heads
    found = said(config, *_KEY_HEADS) or said(said(config, "attn_config"), *_KEY_HEADS)
    return int(found) if isinstance(found, int) else heads


def cut_of(config: Any, cut: str) -> str:
    """How a fused weight is cut, where the kind of model does otherwise than its names say."""
    kind = kind_of(config)
    if kind == "gpt_bigcode" and cut == "stacked" and not said(config, "multi_query"):
        return "grouped"
    return {("codegen", "stacked"): "quarters", ("chatglm", "grouped"): "stacked"}.get((kind, cut), cut)


def gated_width(config: Any) -> int | None:
    """The width of a head where the queries' weight also holds a gate as wide as each head."""
    gated = kind_of(config).startswith(("qwen3_next", "qwen3_5")) or said(config, "attn_output_gate")
    return int(said(config, "head_dim")) if gated and said(config, "head_dim") else None


def calls_of(config: Any, tower: Tower) -> tuple[str, ...]:
    """The blocks of a tower in the order in which they are called: ALBERT calls the same ones again."""
    if kind_of(config) != "albert":
        return tower.blocks
    layers, groups = int(config.num_hidden_layers), int(config.num_hidden_groups)
    each = len(tower.blocks) // groups  # blocks are sorted by group, then inside it
    starts = [int(layer / (layers / groups)) * each for layer in range(layers)]
    return tuple(block for start in starts for block in tower.blocks[start : start + each])


def scale_of(config: Any, width: int, head_width: int, layer: int) -> float:
    """What q·k is multiplied by before the softmax, in layer `layer` of its tower, from 0."""
    kind = kind_of(config)
    if kind in _UNSCALED or any(kind == f"{name}_text" for name in _UNSCALED):
        return 1.0
    if (found := said(config, "attention_multiplier")) is not None:  # Granite
        return float(found)
    if (found := said(config, "query_pre_attn_scalar")) is not None:  # Gemma
        return float(found) ** -0.5
    if (found := said(said(config, "attn_config"), "softmax_scale")) is not None:  # MPT
        return float(found)
    if kind in ("deberta", "deberta-v2"):
        terms = said(config, "pos_att_type") or []
        counted = len(terms) if kind == "deberta" else sum(each in terms for each in ("c2p", "p2c"))
        return (head_width * (1 + counted)) ** -0.5
    if kind == "cvt":
        return width**-0.5
    if kind.startswith("zamba"):
        return (head_width / 2) ** -0.5
    if kind == "crystalcoder" and said(config, "mup_scale_qk_dot_by_d"):
        return 1 / head_width
    scale = 1.0 if said(config, "scale_attn_weights") is False else head_width**-0.5
    return scale / (layer + 1) if said(config, "scale_attn_by_inverse_layer_idx") else scale


def is_rotary(config: Any, layer: int) -> bool:
    """Whether queries and keys are turned to their position after the projection."""
    if (turned := said(config, "no_rope_layers")) is not None and layer < len(turned):
        return bool(turned[layer])
    if said(config, "alibi") or kind_of(config) == "esm":
        return bool(said(config, "position_embedding_type") == "rotary")
    names = ("rope_parameters", "rope_theta", "rotary_dim", "rotary_pct", "rotary_emb_base")
    return said(config, *names) is not None or said(config, "position_embeddings_type") == "rotary"


def left_out(config: Any) -> list[str]:
    """What the scores have beside scale·q·k, as remarks."""
    found = []
    bias = _POSITION_BIAS.get(kind_of(config)) or ("ALiBi" if said(config, "alibi") else None)
    if said(config, "relative_attention") is False:  # DeBERTa without its terms of position
        bias = None
    elif bias is None and any(said(config, f"use_{each}relative_position_bias") for each in ("", "shared_")):
        bias = _RELATIVE
    if bias:
        found.append(f"the scores also have {bias}, which the static form leaves out")
    if cap := said(config, "attn_logit_softcapping"):
        found.append(f"the scores are soft-capped at {cap:g}, which the static form leaves out")
    if clip := said(config, "clip_qkv") or said(said(config, "attn_config"), "clip_qkv"):
        found.append(f"queries and keys are clipped at ±{clip:g}, which the static form leaves out")
    return found


def epsilon_of(config: Any) -> float:
    """The ε of the norms; torch's 1e-5 where the config does not say."""
    found = _OWN_EPSILON.get(kind_of(config), said(config, *_EPSILONS))
    return float(found) if isinstance(found, int | float) else 1e-5


def norm_kind(config: Any, has_bias: bool) -> str:
    """LayerNorm or RMSNorm; a norm with a bias is a LayerNorm."""
    plain = kind_of(config) in _ROOT_MEAN_SQUARE or said(config, "rms_norm_eps") is not None
    return "RMSNorm" if plain and not has_bias else "LayerNorm"


def adds_one(config: Any) -> bool:
    """Whether norms multiply by one plus what is stored."""
    return kind_of(config) in _PLUS_ONE


def no_heads(where: str) -> IsoscopeError:
    """Say that the number of heads is not to be had."""
    return IsoscopeError(
        f"'{where}' does not say how many heads it has: looked for {', '.join(HEADS)} in its config or its "
        "attention modules; put one into its config.json."
    )
