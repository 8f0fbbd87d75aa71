"""Which norm stands in front of an attention, and which is the last of a model.

Pre-norm blocks have it inside, before attention. In post-norm blocks (BERT, BART, wav2vec 2.0) what enters
is what leaves the norm that closes the block before, or the embedding's. Keys of cross-attention come from
the encoder's last norm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from isoscope.models.weights.config import kind_of, said
from isoscope.models.weights.names import Place, Tower

BEFORE = "before attention"
_BEFORE_SELF = (  # in a block, in front of attention to itself
    "input_layernorm", "ln_attn", "ln_1", "ln1", "layernorm_before", "layer_norm1", "layer_norm_1", "norm1",
    "norm_1", "attn_ln", "attn_norm", "attention_norm", "norm_attention", "norm_attn_norm.norm_1",
    "layer.0.layer_norm", "self_attn_layer_norm", "attention.LayerNorm", "layer_norm",
    "operator_norm", "temporal_pre_norm",
)  # fmt: skip
_BEFORE_CROSS = ("encoder_attn_layer_norm", "layer.1.layer_norm", "cross_attn_ln", "ln_cross_attn", "norm2")
_AFTER = (  # the norm after attention, by which a post-norm block is known, and the one that closes the block
    ("attention.output.LayerNorm", "output.LayerNorm"),
    ("sa_layer_norm", "output_layer_norm"),
    ("attention.LayerNorm", "full_layer_layer_norm"),
    ("rel_attn.layer_norm", "ff.layer_norm"),
    ("after_attention", "after_mlp"),
)
_AFTER_BY_KIND = (  # the same names serve pre-norm and post-norm blocks: the kind of model tells
    ("self_attn_layer_norm", "final_layer_norm"),
    ("layer_norm", "final_layer_norm"),
    ("norm1", "norm3"),
    ("norm1", "norm2"),
)
_POST_NORM = (
    "bart", "blenderbot-small", "fsmt", "led", "marian", "mvp", "plbart", "prophetnet", "trocr", "detr",
    "conditional_detr", "time_series_transformer", "informer", "autoformer", "data2vec-audio", "sew",
)  # fmt: skip
_STABLE = ("wav2vec2", "hubert", "unispeech", "unispeech-sat", "wavlm")  # post-norm unless the config says
_LATER = ("modernbert",)  # pre-norm, but for the first block, which takes the embedding's norm as it is
_UNNORMED = ("swinv2",)  # the norm called `before` comes after attention, and none before it
_EMBEDDING = ("embeddings.LayerNorm", "layernorm_embedding", "embeddings.norm")
_BETWEEN = ("embedding_hidden_mapping_in", "embeddings_project")  # a projection after the embedding's norm
_FINAL = (
    "ln_f", "final_layer_norm", "final_layernorm", "final_norm", "norm_f", "norm", "layernorm", "layer_norm",
    "post_layernorm", "ln_post", "ln_final", "ln", "norm_out", "emb_layer_norm_after",
)  # fmt: skip


@dataclass(frozen=True)
class Found:
    """The name of a norm and where it stands; without a name, `where` says why."""

    name: str | None
    where: str


def norm_in_front(
    place: Place, tower: Tower, previous: str | None, names: frozenset[str], config: Any, post: bool | None
) -> Found:
    """The norm whose output the queries of a block are made of, `previous` the block that runs before it.

    `post` says whether the block is post-norm, where more is known of it than its config.
    """
    closing = _closing(place.block, names, config, post)
    if any(name.startswith(f"{place.block}.") and "convolution_projection" in name for name in names):
        return Found(None, "a convolution stands between the norm and the projections")
    if closing is None:
        wanted = _BEFORE_CROSS if place.cross else _BEFORE_SELF
        for name in wanted if kind_of(config) not in _UNNORMED else ():
            if has_norm(found := f"{place.block}.{name}", names):
                return Found(found, BEFORE)
        if previous is None and kind_of(config) in _LATER and (entry := _entry(tower.stem, names)):
            return Found(entry, "after the embedding")
        return Found(None, "no norm with weights is known to stand in front of attention")
    if place.cross:
        return Found(f"{place.block}.{closing[0]}", "after attention to itself")
    if previous is not None:
        return Found(f"{previous}.{closing[1]}", "after the block before")
    if any(between in name for name in names for between in _BETWEEN):
        return Found(None, "a projection stands between the embedding's norm and the first block")
    if entry := _entry(tower.stem, names):
        return Found(entry, "after the embedding")
    return Found(None, "no norm is known to stand between the embedding and the first block")


def last_norm(tower: Tower, names: frozenset[str], config: Any, post: bool | None) -> Found:
    """The norm that the output of a tower leaves: the final one, or that which closes its last block."""
    closing = _closing(tower.blocks[-1], names, config, post)
    entry = None if closing is None else _entry(tower.stem, names)
    for home in _homes(tower.stem):
        for ending in _FINAL if closing is not None else (*_FINAL, "LayerNorm"):  # DeBERTa's is of positions
            if has_norm(home + ending, names) and home + ending != entry:
                return Found(home + ending, "after the last block")
    if closing is not None:
        return Found(f"{tower.blocks[-1]}.{closing[1]}", "the last block's own")
    return Found(None, "no final norm with weights is known")


def has_norm(name: str, names: frozenset[str]) -> bool:
    """Whether the weights of this norm are there, by either of the two words for them."""
    return f"{name}.weight" in names or f"{name}.gamma" in names


def _closing(block: str, names: frozenset[str], config: Any, post: bool | None) -> tuple[str, str] | None:
    """The norms after attention and at the end of a post-norm block; None where it is pre-norm."""
    if post is None and kind_of(config) in _STABLE:
        post = not said(config, "do_stable_layer_norm")
    elif post is None:
        post = kind_of(config) in _POST_NORM or said(config, "do_layer_norm_before") is False
    for after, closing in (*_AFTER, *_AFTER_BY_KIND) if post else _AFTER:
        if has_norm(f"{block}.{after}", names) and has_norm(f"{block}.{closing}", names):
            return after, closing
    return None


def _homes(stem: str) -> list[str]:
    """The prefixes that a name beside the list of blocks may have, nearest first."""
    parts = stem.split(".")[:-2] if "." in stem else []
    while parts and "#" in parts:
        parts = parts[: parts.index("#") - 1]
    return [".".join([*parts[:count], ""]) for count in range(len(parts), -1, -1)]


def _entry(stem: str, names: frozenset[str]) -> str | None:
    """The embedding's norm; wav2vec 2.0's stands beside the list of blocks."""
    homes = _homes(stem)
    wanted = [home + ending for home in homes for ending in _EMBEDDING]
    return next((name for name in [*wanted, f"{homes[0]}layer_norm"] if has_norm(name, names)), None)
