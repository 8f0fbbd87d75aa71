"""Tiny models whose weights are weighed, whole and in shards, and how one row of the result is found."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import torch
import transformers
from torch import nn

from tests.models.tiny import VOCABULARY

SIZES = {"vocab_size": VOCABULARY, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4}


def build(config: transformers.PreTrainedConfig, kind: type, seed: int = 0) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model: nn.Module = kind(config)
        for parameter in model.parameters():
            nn.init.normal_(parameter, 0.1, 0.3)
    return model.eval()


def llama(**given: object) -> nn.Module:
    settings = {**SIZES, "intermediate_size": 32, "num_key_value_heads": 2, "tie_word_embeddings": False}
    return build(transformers.LlamaConfig(**(settings | given)), transformers.LlamaForCausalLM)


def bert() -> nn.Module:
    config = transformers.BertConfig(**SIZES, intermediate_size=32, max_position_embeddings=64)
    return build(config, transformers.BertModel)


def t5() -> nn.Module:
    config = transformers.T5Config(
        vocab_size=VOCABULARY,
        d_model=16,
        d_kv=4,
        d_ff=32,
        num_layers=2,
        num_heads=4,
        decoder_start_token_id=0,
    )
    return build(config, transformers.T5ForConditionalGeneration)


def value(table: pd.DataFrame, kind: str, measure: str, layer: int | None = None, head: int | None = None):
    found = table[(table.kind == kind) & (table.measure == measure)]
    found = found[found.layer.isna() if layer is None else found.layer == layer]
    found = found[found["head"].isna() if head is None else found["head"] == head]
    assert len(found) == 1
    return found.iloc[0]


def sharded(model: nn.Module, folder: Path) -> Path:
    model.save_pretrained(folder, max_shard_size="6KB")  # type: ignore[operator]
    assert len(list(folder.glob("*.safetensors"))) > 4
    return folder


def shard_of(folder: Path, name: str) -> Path:
    return folder / json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"][name]
