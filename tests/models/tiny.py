"""Tiny random models of many architectures, and real tiny tokenizers: saved to disk, as a user has them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import tokenizers
import torch
import transformers
from tokenizers import decoders, pre_tokenizers, processors

from tests.models.nano import CLS, LAYERS, PAD, SEP, SPECIAL, VOCABULARY, WIDTH, Block, ids, nano

with warnings.catch_warnings():  # the module compiles with torch.jit.script, which is deprecated
    warnings.simplefilter("ignore")
    import transformers.models.deberta_v2.modeling_deberta_v2

__all__ = ["CLS", "LAYERS", "PAD", "SEP", "SPECIAL", "VOCABULARY", "WIDTH", "Block", "ids", "nano"]
FRAMES = {"both": "[CLS] $A [SEP]", "bos": "[CLS] $A", "none": "$A"}

EVERY = {"skip_first": False, "skip_special": False}  # every position that is no padding counts


def tokenizer(frame: str = "both", longest: int | None = None) -> transformers.PreTrainedTokenizerFast:
    """One token a byte, with the special tokens of `frame` around every text."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate((*SPECIAL, *alphabet))}
    inner = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, [], unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.post_processor = processors.TemplateProcessing(
        single=FRAMES[frame], special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)]
    )
    names = {f"{token[1:-1].lower()}_token": token for token in SPECIAL}
    limit = {} if longest is None else {"model_max_length": longest}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=inner, **names, **limit)


_SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 80,
    "pad_token_id": PAD,
    "initializer_range": 0.3,
}
_ENDS = {"bos_token_id": CLS, "eos_token_id": SEP}

CONFIGS: dict[str, Callable[[], transformers.PreTrainedConfig]] = {
    "bert": lambda: transformers.BertConfig(**_SIZES),
    "roberta": lambda: transformers.RobertaConfig(**_SIZES),
    "gpt2": lambda: transformers.GPT2Config(
        vocab_size=VOCABULARY,
        n_embd=WIDTH,
        n_layer=LAYERS,
        n_head=2,
        n_positions=80,
        initializer_range=0.3,
        pad_token_id=PAD,
        **_ENDS,
    ),
    "gpt_neox": lambda: transformers.GPTNeoXConfig(**_SIZES, **_ENDS),
    "llama": lambda: transformers.LlamaConfig(
        **{**_SIZES, "num_attention_heads": 4, "num_key_value_heads": 2}, **_ENDS
    ),
    "albert": lambda: transformers.AlbertConfig(**_SIZES, embedding_size=8),
    "modernbert": lambda: transformers.ModernBertConfig(
        **_SIZES,
        **_ENDS,
        cls_token_id=CLS,
        sep_token_id=SEP,
        local_attention=16,
    ),
    "deberta_v2": lambda: transformers.DebertaV2Config(
        **_SIZES,
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        position_biased_input=False,
    ),
    "canine": lambda: transformers.CanineConfig(
        **{**_SIZES, "pad_token_id": 0},
        num_hash_functions=4,
        num_hash_buckets=97,
        local_transformer_stride=16,
    ),
}

FINAL_NORMS = {"gpt2": "ln_f", "gpt_neox": "final_layer_norm", "llama": "norm", "modernbert": "final_norm"}


def model(family: str, seed: int = 0, **changes: object) -> transformers.PreTrainedModel:
    """A random model of this family, at rest; `changes` go to its config."""
    torch.manual_seed(seed)
    config = CONFIGS[family]()
    for name, value in changes.items():
        setattr(config, name, value)
    return transformers.AutoModel.from_config(config).eval()


def save(family: str, folder: Path, seed: int = 0, frame: str = "both") -> Path:
    """A random model and its tokenizer, as files in `folder`."""
    model(family, seed).save_pretrained(folder)
    own = transformers.CanineTokenizer() if family == "canine" else tokenizer(frame)
    own.save_pretrained(folder)
    return folder
