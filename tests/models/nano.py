"""A tiny language model as people write it by hand, and token ids for it: torch alone."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

torch.set_num_threads(1)  # nothing here is large enough to share

WIDTH, LAYERS = 16, 3
SPECIAL = ("[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]")  # the padding is 1, as RoBERTa has it
CLS, PAD, SEP = 0, 1, 2
VOCABULARY = len(SPECIAL) + 256


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
