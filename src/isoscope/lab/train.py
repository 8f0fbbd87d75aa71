"""Train a small language model, one step at a time, the same way every time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from isoscope.lab.transformer import Transformer


@dataclass(frozen=True)
class Recipe:
    """How to train: AdamW with a linear warm-up."""

    steps: int = 400
    batch_size: int = 16
    rate: float = 3e-3
    warmup: int = 20
    seed: int = 0


def next_token_loss(model: Transformer, ids: Tensor) -> Tensor:
    """Mean of −log p(next token) over `ids` [b, t], in nats."""
    logits = model(ids[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


def train(model: Transformer, corpus: Tensor, recipe: Recipe) -> Iterator[int]:
    """Train on windows drawn from `corpus` [n]; yields the number of steps done, from 0 on.

    Between two yields the caller may look at the model as long as it leaves it as it was.
    """
    random = torch.Generator().manual_seed(recipe.seed)
    optimiser = torch.optim.AdamW(model.parameters(), lr=recipe.rate, betas=(0.9, 0.95), weight_decay=0.1)
    window = torch.arange(model.shape.length + 1)
    for step in range(recipe.steps):
        yield step
        model.train()
        for group in optimiser.param_groups:
            group["lr"] = recipe.rate * min(1.0, (step + 1) / recipe.warmup)
        starts = torch.randint(len(corpus) - len(window) + 1, (recipe.batch_size,), generator=random)
        loss = next_token_loss(model, corpus[starts[:, None] + window])
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    yield recipe.steps
