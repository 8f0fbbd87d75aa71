"""Small trainings to watch: one loop, with the ways in which people train switched on one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from isoscope.run.monitor.monitor import Monitor

VOCABULARY, WIDTH, LENGTH = 40, 16, 12
torch.set_num_threads(1)


class Block(nn.Module):
    """Attention and an MLP, with dropout, or with BatchNorm in place of LayerNorm."""

    def __init__(self, dropout: float = 0.0, batch_norm: bool = False, heads: int = 2) -> None:
        super().__init__()
        self.heads, self.batch_norm = heads, batch_norm
        self.norm = nn.BatchNorm1d(WIDTH) if batch_norm else nn.LayerNorm(WIDTH)
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        normed = self.norm(x.transpose(1, 2)).transpose(1, 2) if self.batch_norm else self.norm(x)
        q, k, v = (
            part(normed).view(*x.shape[:2], self.heads, -1).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        x = x + self.dropout(self.out(mixed))
        return x + self.dropout(self.down(functional.gelu(self.up(x))))


class Language(nn.Module):
    """A language model of two blocks; `recompute` checkpoints their activations."""

    def __init__(
        self, *, dropout: float = 0.0, batch_norm: bool = False, recompute: bool | str = False
    ) -> None:
        super().__init__()
        self.recompute = recompute
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block(dropout, batch_norm) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, idx: Tensor) -> Tensor:
        x = self.tokens(idx) + self.positions.weight[: idx.shape[1]]
        for block in self.blocks:
            if self.recompute:
                x = checkpoint(block, x, use_reentrant=self.recompute == "reentrant")
            else:
                x = block(x)
        return self.head(self.norm(x))


def language(seed: int = 0, **options: object) -> Language:
    torch.manual_seed(seed)
    return Language(**options)  # type: ignore[arg-type]


def ids(size: int = 4, seed: int = 0) -> Tensor:
    return torch.randint(VOCABULARY, (size, LENGTH), generator=torch.Generator().manual_seed(seed))


def probe(batches: int = 3) -> list[Tensor]:
    return [ids(4, 100 + number) for number in range(batches)]


def loss_of(model: nn.Module, batch: Tensor) -> Tensor:
    return functional.cross_entropy(model(batch)[:, :-1].flatten(0, 1), batch[:, 1:].flatten())


Watch = Callable[[nn.Module], Monitor | None]


def trained(
    model: nn.Module,
    watch: Watch = lambda model: None,
    *,
    steps: int = 6,
    accumulate: int = 1,
    autocast: bool = False,
    watch_inside: bool = False,
    rate: float = 0.01,
) -> tuple[list[float], dict[str, Tensor]]:
    """The losses and the weights of a short training that draws its data from the global random state.

    With `watch_inside` the monitor is called between the backward calls of a step, inside autocast if any.
    """
    torch.manual_seed(7)
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate)
    monitor = watch(model)
    losses = []
    for step in range(steps):
        if monitor is not None and not watch_inside:
            monitor.step(step)
        optimiser.zero_grad()
        with torch.autocast("cpu", torch.bfloat16) if autocast else nullcontext():
            for part in range(accumulate):
                loss = loss_of(model, torch.randint(VOCABULARY, (4, LENGTH)))
                (loss / accumulate).backward()
                losses.append(loss.item())
                if monitor is not None and watch_inside and part == 0:
                    monitor.step(step)
        optimiser.step()
    if monitor is not None:
        monitor.close()
    return losses, {name: tensor.clone() for name, tensor in model.state_dict().items()}


def same(one: tuple[list[float], dict[str, Tensor]], other: tuple[list[float], dict[str, Tensor]]) -> bool:
    """Bit by bit."""
    return one[0] == other[0] and all(torch.equal(x, other[1][name]) for name, x in one[1].items())


def forever(seed: int = 0) -> Iterator[Tensor]:
    while True:
        yield ids(256, seed)
