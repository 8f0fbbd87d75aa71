"""Small models whose attention is made to order, so that what enters the scores is known."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

HEADS, WIDTH = 4, 8  # of a head
LENGTH = 12


def turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary position: every half of x [b, h, t, e] with the other, by the angle of its row."""
    one, other = x.chunk(2, dim=-1)
    return torch.cat([one * cos - other * sin, one * sin + other * cos], dim=-1)


class Attention(nn.Module):
    """softmax(q·k/√e): rotary position, a norm on the keys, a soft-cap and shifts are given from outside."""

    def __init__(self, *, causal: bool, rotary: bool, norm: bool, cap: float | None) -> None:
        super().__init__()
        inner = HEADS * WIDTH
        self.query, self.key, self.value = (nn.Linear(inner, inner) for _ in range(3))
        self.causal, self.rotary, self.norm, self.cap = causal, rotary, norm, cap
        self.centre, self.before, self.after = (
            nn.Parameter(torch.zeros(HEADS, 1, WIDTH), requires_grad=False) for _ in range(3)
        )
        angle = torch.outer(torch.arange(64.0), 0.5 ** torch.arange(WIDTH // 2))
        self.cos, self.sin = angle.cos(), angle.sin()

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (
            part(x).unflatten(-1, (HEADS, WIDTH)).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        query, key = query - self.centre, key + self.before
        if self.norm:
            key = functional.layer_norm(key, (WIDTH,))
        if self.rotary:
            cos, sin = (table[: x.shape[1]].to(x.dtype) for table in (self.cos, self.sin))
            query, key = turned(query, cos, sin), turned(key, cos, sin)
        key = key + self.after
        if self.cap is None:
            out = functional.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        else:
            scores = self.cap * torch.tanh(query @ key.mT * WIDTH**-0.5 / self.cap)
            out = scores.softmax(-1) @ value
        return out.transpose(1, 2).flatten(2)


class Block(nn.Module):
    def __init__(self, attention: Attention) -> None:
        super().__init__()
        self.attention = attention

    def forward(self, x: Tensor) -> Tensor:
        return x + 0.3 * self.attention(x)


class Small(nn.Module):
    """Two blocks over vectors [b, t, 32], in float64."""

    def __init__(
        self, *, causal: bool = True, rotary: bool = False, norm: bool = False, cap: float | None = None
    ) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.blocks = nn.ModuleList(
                Block(Attention(causal=causal, rotary=rotary, norm=norm, cap=cap)) for _ in range(2)
            )
        with torch.no_grad():
            for block in self.attentions:
                block.query.weight.mul_(2)
                block.key.weight.mul_(2)
                block.query.bias.mul_(5)  # so that queries drift
        self.double()

    @property
    def attentions(self) -> list[Attention]:
        return [block.attention for block in self.blocks]  # type: ignore[union-attr, misc]

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x


def vectors(size: int = 16, length: int = LENGTH, seed: int = 1) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.randn(size, length, HEADS * WIDTH, generator=random, dtype=torch.float64)


class Untrained(nn.Module):
    """Two blocks of untrained heads that pass on what they take: layer-normalised vectors plus a bias."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.blocks = nn.ModuleList(Projections(width, heads) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x


class Projections(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key = (nn.Linear(width, width, bias=False) for _ in range(2))
        for part in (self.query, self.key):
            nn.init.normal_(part.weight, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        query, key = (
            part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (self.query, self.key)
        )
        functional.scaled_dot_product_attention(query, key, key)
        return x * 1


class Sinking(nn.Module):
    """Blocks whose first key lies along the queries' mean: a sink, carried by the mean query alone."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Sink() for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x


class Sink(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key = (nn.Linear(32, 32, bias=False) for _ in range(2))
        random = torch.Generator().manual_seed(8)
        for part in (self.query, self.key):
            nn.init.normal_(part.weight, std=0.05, generator=random)
        along = functional.normalize(torch.randn(4, 1, 8, generator=random), dim=-1)
        self.along = nn.Parameter(along, requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        query, key = (part(x).unflatten(-1, (4, 8)).transpose(1, 2) for part in (self.query, self.key))
        first = (torch.arange(x.shape[1]) == 0)[:, None]
        key = torch.where(first, 5 * self.along, key)
        functional.scaled_dot_product_attention(query + 4 * self.along, key, key, is_causal=True)
        return x * 1


class ByHand(nn.Module):
    """Attention as tutorials write it: what is hidden is filled with −1e9."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(16, 16), nn.Linear(16, 16)
        self.weight: Tensor | None = None

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        query, key = (part(x).unflatten(-1, (2, 8)).transpose(1, 2) for part in (self.query, self.key))
        scores = (query @ key.mT / 8**0.5).masked_fill(mask == 0, -1e9)
        self.weight = scores.softmax(-1)
        return x + (self.weight @ key).transpose(1, 2).flatten(2)


class Tutorial(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(ByHand() for _ in range(2))

    def forward(self, x: Tensor, attention_mask: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x, attention_mask[:, None, None])
        return x
