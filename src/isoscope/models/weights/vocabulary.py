"""Which names mean the vocabulary: the table that tokens enter by, and the one they leave by."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from isoscope.models.weights.config import said

INPUT = (  # endings, the surest first
    "shared.weight", "embed_tokens.weight", "word_embeddings.weight", "wte.weight", "embed_in.weight",
    "token_embedding.weight", "tok_embeddings.weight", "word_embedding.weight", "tokens_embed.weight",
    "token_embeddings.weight", "tok_emb.weight", "token_embed.weight", "tokens.weight", "embeddings.weight",
)  # fmt: skip
OUTPUT = (
    "lm_head.weight", "lm_head.decoder.weight", "embed_out.weight", "predictions.decoder.weight",
    "vocab_projector.weight", "proj_out.weight", "lm_loss.weight", "generator_lm_head.weight",
    "pred_layer.proj.weight", "unembed.weight",
)  # fmt: skip
_OUTPUT_OUTSIDE = ("decoder.weight", "output.weight", "head.weight")  # with nothing before them
_BIASES = (  # of the logits, where the matrix is the input's
    "cls.predictions.bias", "predictions.bias", "final_logits_bias", "decoder.bias",
    *(name.removesuffix("weight") + "bias" for name in OUTPUT),
)  # fmt: skip
_HEADS = re.compile(r"CausalLM|LMHead|MaskedLM|ConditionalGeneration|PreTraining|DoubleHeads|CTC")
_TRACES = ("cls.predictions.", "lm_head.", "predictions.", "vocab_transform.", "generator_predictions.")


def input_name(names: frozenset[str], *, decoder: bool = False) -> str | None:
    """The table of token embeddings; that of the decoder where there are several and it is asked for."""
    found = _first(names, INPUT)
    wanted = [name for name in found if "decoder" in name] + found if decoder else found[-1:]
    return next(iter(wanted), None)


def output_name(names: frozenset[str]) -> str | None:
    """The matrix that gives the logits, where it is stored."""
    return next((name for name in (*_first(names, OUTPUT), *_OUTPUT_OUTSIDE) if name in names), None)


def _first(names: frozenset[str], endings: Iterable[str]) -> list[str]:
    """The names with the first of these endings that any has."""
    each = (sorted(name for name in names if f".{name}".endswith(f".{ending}")) for ending in endings)
    return next(filter(None, each), [])


def output_bias(names: frozenset[str], matrix: str | None) -> str | None:
    """The bias that is added to the logits."""
    own = [] if matrix is None else [matrix.removesuffix("weight") + "bias"]
    return next((name for name in (*own, *_BIASES) if name in names), None)


def no_output(names: frozenset[str], config: Any) -> str:
    """Why a model whose file has no output matrix has none at all; empty where it is the input's, tied."""
    made = [str(name) for name in said(config, "architectures") or []]
    traces = any(name.startswith(_TRACES) for name in names)
    if not traces and not any(map(_HEADS.search, made)):
        return f"the weights are of {made[0] if made else 'a model'}, which has no vocabulary head"
    if said(config, "tie_word_embeddings") is False:
        return "the config says that input and output are not tied, and the weights hold no output matrix"
    return ""
