"""One small Transformer, decoder or encoder, of tokens or of vectors; every knob is one word of a table."""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

import torch
from torch import Tensor, nn

from isoscope.errors import IsoscopeError, chosen
from isoscope.lab.model.norms import NORMS
from isoscope.lab.variants.base import Given, Place
from isoscope.lab.variants.sigma import SigmaLinear
from isoscope.lab.variants.table import VARIANTS


@dataclass(frozen=True)
class Shape:
    """How large the model is, and what it is made of.

    `vocabulary` counts the tokens that enter; where `vectors` enter, their dimensions. `outputs` are as many
    unless given. A `pooled` model gives one answer a sequence.
    """

    vocabulary: int
    width: int = 128
    layers: int = 4
    heads: int = 4
    length: int = 128
    attention: str = "softmax"
    norm: str = "pre"
    causal: bool = True
    vectors: bool = False
    outputs: int | None = None
    pooled: bool = False

    def __post_init__(self) -> None:
        chosen("attention variant", self.attention, VARIANTS)
        chosen("norm", self.norm, NORMS)
        if self.width % self.heads:
            those = ", ".join(str(n) for n in range(1, self.width + 1) if self.width % n == 0)
            raise IsoscopeError(f"{self.heads} heads do not divide a width of {self.width}; {those} would.")
        if self.attention == "differential" and self.width // self.heads % 2:
            raise IsoscopeError(
                f"differential attention cuts heads in two, and {self.width // self.heads} dimensions a head "
                "are odd; take another number of heads."
            )


class Attention(nn.Module):
    """Multi-head self-attention of one variant."""

    def __init__(self, shape: Shape, layer: int) -> None:
        super().__init__()
        variant = chosen("attention variant", shape.attention, VARIANTS)
        self.heads, self.causal = shape.heads, shape.causal
        self.query = variant.project(shape.width, shape.width)
        self.key = variant.project(shape.width, shape.width)
        self.value = nn.Linear(shape.width, shape.width)
        self.attend = variant.build(Place(shape.width, shape.heads, layer))
        self.out = nn.Linear(shape.width, shape.width)

    def forward(self, x: Tensor, counts: Tensor | None) -> Tensor:
        """[b, t, d] to [b, t, d]; `counts` [b, t] tells which positions are there."""
        made = (project(x) for project in (self.query, self.key, self.value))
        query, key, value = (each.view(*x.shape[:2], self.heads, -1).transpose(1, 2) for each in made)
        mixed = self.attend(Given(x, query, key, value, self.causal, counts))
        return self.out(mixed.transpose(1, 2).reshape(x.shape))


class Block(nn.Module):
    """Attention, then an MLP, each added to what enters it, with the norms where they belong."""

    def __init__(self, shape: Shape, layer: int) -> None:
        super().__init__()
        norm, width = chosen("norm", shape.norm, NORMS), shape.width
        self.norm_attention, self.norm_mlp = norm.before(width), norm.before(width)
        self.attention = Attention(shape, layer)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.inner_attention, self.inner_mlp = norm.inner(width), norm.inner(width)
        self.after_attention, self.after_mlp = norm.after(width), norm.after(width)

    def forward(self, x: Tensor, counts: Tensor | None = None) -> Tensor:
        """[b, t, d] to [b, t, d]."""
        attended = self.attention(self.norm_attention(x), counts)
        x = self.after_attention(x + self.inner_attention(attended))
        return self.after_mlp(x + self.inner_mlp(self.mlp(self.norm_mlp(x))))


class Transformer(nn.Module):
    """Token ids [b, t] or vectors [b, t, c] to answers [b, t, outputs], or [b, outputs] where pooled."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        if shape.vectors:
            self.vectors = nn.Linear(shape.vocabulary, shape.width)
        else:
            self.tokens = nn.Embedding(shape.vocabulary, shape.width)
        self.positions = nn.Embedding(shape.length, shape.width)
        self.blocks = nn.ModuleList(Block(shape, layer + 1) for layer in range(shape.layers))
        self.norm = chosen("norm", shape.norm, NORMS).last(shape.width)
        self.head = nn.Linear(shape.width, shape.outputs or shape.vocabulary, bias=False)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Answers; what the mask leaves out is seen by nobody and pooled nowhere."""
        length = input_ids.shape[1]
        if length > self.shape.length:
            raise IsoscopeError(
                f"the model has {self.shape.length} positions and was given {length}; shorten what enters, "
                "or build it with a larger length."
            )
        enter = self.vectors if self.shape.vectors else self.tokens
        x = enter(input_ids) + self.positions.weight[:length]
        for block in self.blocks:
            x = block(x, attention_mask)
        x = self.norm(x)
        if self.shape.pooled:
            x = x.mean(1) if attention_mask is None else _mean(x, attention_mask)
        return self.head(x)


def _mean(x: Tensor, counts: Tensor) -> Tensor:
    """The mean of [b, t, d] over the positions that are there, [b, d]."""
    weight = counts.to(x)[..., None]
    return (weight * x).sum(1) / weight.sum(1).clamp_min(1)


def _start(module: nn.Module) -> None:
    """Weights as in GPT-2: N(0, .02²), biases zero."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
    if isinstance(module, SigmaLinear):
        module.start(0.02)


def build(shape: Shape, seed: int) -> Transformer:
    """A fresh model, each part with a seed made of its name; the global random state stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # this one alone: torch.manual_seed reaches GPUs too
        model = Transformer(shape)
        for name, part in model.named_modules():
            torch.default_generator.manual_seed(crc32(f"{seed} {name}".encode()))
            _start(part)
        return model
