"""A small attention whose inputs are given and whose queries and keys are made to order."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from isoscope.data.batch import Batch
from isoscope.data.keys import content_keys


class Attention(nn.Module):
    """softmax(scale·q·k), causal, without biases; the query and key of head i are `query[i]` and `key[i]`."""

    def __init__(self, query: Tensor, key: Tensor) -> None:
        super().__init__()
        self.num_heads, width, inner = query.shape
        self.query, self.key, self.value = (
            nn.Linear(width, self.num_heads * inner, bias=False) for _ in range(3)
        )
        with torch.no_grad():
            for part, weight in ((self.query, query), (self.key, key)):
                part.weight.copy_(weight.mT.flatten(0, 1))

    def forward(self, x: Tensor) -> Tensor:
        heads = [
            part(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        ]
        out: Tensor = functional.scaled_dot_product_attention(*heads, is_causal=True)
        return out.transpose(1, 2).flatten(2)


class Block(nn.Module):
    def __init__(self, query: Tensor, key: Tensor) -> None:
        super().__init__()
        self.attention = Attention(query, key)

    def forward(self, x: Tensor) -> Tensor:
        return x + 0 * self.attention(x).sum()


class Walking(nn.Module):
    """One block over inputs [b, t, d] as they are, in float64."""

    def __init__(self, query: Tensor, key: Tensor) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(query, key)])
        self.double()

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x


def walks(number: int, length: int, width: int, seed: int = 0, *, still: bool = False) -> Tensor:
    """Random walks [number, length, width]; or, `still`, positions that do not depend on each other."""
    random = torch.Generator().manual_seed(seed)
    steps = torch.randn(number, length, width, generator=random, dtype=torch.float64)
    return steps if still else steps.cumsum(1)


def batches(inputs: Tensor, size: int) -> list[Batch]:
    """Batches of so many sequences, with the keys of their content."""
    return [Batch(some, None, content_keys(some, 0)) for some in inputs.split(size)]
