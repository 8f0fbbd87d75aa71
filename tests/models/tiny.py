"""Tiny random models of many architectures, and real tiny tokenizers: saved to disk, as a user has them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import tokenizers
import torch
import transformers
from tokenizers import decoders, pre_tokenizers, processors
from torch import Tensor, nn
from torch.nn import functional

with warnings.catch_warnings():  # the module compiles with torch.jit.script, which is deprecated
    warnings.simplefilter("ignore")
    import transformers.models.deberta_v2.modeling_deberta_v2

torch.set_num_threads(1)  # nothing here is large enough to share

WIDTH, LAYERS = 16, 3
SPECIAL = ("[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]")  # the padding is 1, as RoBERTa has it
CLS, PAD, SEP = 0, 1, 2
VOCABULARY = len(SPECIAL) + 256
FRAMES = {"both": "[CLS] $A [SEP]", "bos": "[CLS] $A", "none": "$A"}


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


def ids(size: int = 3, length: int = 24, seed: int = 1) -> dict[str, Tensor]:
    """Token ids with padding on the right of all but the first sequence."""
    generator = torch.Generator().manual_seed(seed)
    found = torch.randint(len(SPECIAL), VOCABULARY, (size, length), generator=generator)
    mask = torch.ones_like(found)
    for row in range(1, size):
        found[row, length - 3 * row :] = PAD
        mask[row, length - 3 * row :] = 0
    return {"input_ids": found, "attention_mask": mask}


class Head(nn.Module):
    """One head of attention, with its own weights."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, inner, bias=False) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(
            self.query(x), self.key(x), self.value(x), is_causal=True
        )


class Block(nn.Module):
    """A block as people write it by hand: heads and experts in lists, dropout, norms before."""

    def __init__(self, width: int = WIDTH, heads: int = 2, experts: int = 2) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.heads = nn.ModuleList(Head(width, width // heads) for _ in range(heads))
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Linear(32, width)) for _ in range(experts)
        )
        self.dropout = nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        normed = self.norm_1(x)
        x = x + self.dropout(torch.cat([head(normed) for head in self.heads], dim=-1))
        normed = self.norm_2(x)
        return x + self.dropout(torch.stack([expert(normed) for expert in self.experts]).mean(0))


class NanoGPT(nn.Module):
    """A hand-written language model: embeddings, blocks in a list or a Sequential, final norm, head."""

    def __init__(
        self, layers: int = LAYERS, stack: Callable[[list[Block]], nn.Module] = nn.ModuleList
    ) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(80, WIDTH)
        self.h = stack([Block() for _ in range(layers)])
        self.ln_f = nn.LayerNorm(WIDTH)
        self.lm_head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, idx: Tensor) -> Tensor:
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
        if isinstance(self.h, nn.Sequential):
            x = self.h(x)
        else:
            for block in self.h:
                x = block(x)
        return self.lm_head(self.ln_f(x))


def nano(seed: int = 0, stack: Callable[..., nn.Module] = nn.ModuleList) -> NanoGPT:
    """A random NanoGPT, in train mode as it leaves its constructor."""
    torch.manual_seed(seed)
    return NanoGPT(stack=stack)
