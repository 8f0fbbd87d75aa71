"""One small CNN: residual blocks on the square of patches that the Transformer takes as a line."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from isoscope.errors import IsoscopeError, unknown_name

NORMS = {"batch": "relu(x + BN(f(relu(BN(f(x))))))", "none": "relu(x + f(relu(f(x))))"}


@dataclass(frozen=True)
class Grid:
    """How large the network is: `patches` of `channels` numbers enter, a square of them."""

    channels: int
    patches: int
    outputs: int
    width: int = 32
    layers: int = 4
    norm: str = "batch"

    def __post_init__(self) -> None:
        if self.norm not in NORMS:
            raise unknown_name("norm of a CNN", self.norm, NORMS)
        if math.isqrt(self.patches) ** 2 != self.patches:
            raise IsoscopeError(f"a CNN takes squares, and {self.patches} patches are none.")


class Residual(nn.Module):
    """Two convolutions of 3 × 3, added to what enters them."""

    def __init__(self, width: int, norm: str) -> None:
        super().__init__()
        normed = norm == "batch"
        self.first, self.second = (nn.Conv2d(width, width, 3, padding=1, bias=not normed) for _ in range(2))
        norms = (nn.BatchNorm2d(width) if normed else nn.Identity() for _ in range(2))
        self.norm_first, self.norm_second = norms

    def forward(self, x: Tensor) -> Tensor:
        """[b, d, s, s] to [b, d, s, s]."""
        inner = self.norm_first(self.first(x)).relu()
        return (x + self.norm_second(self.second(inner))).relu()


class Cnn(nn.Module):
    """Patches [b, s², c] to answers [b, outputs]."""

    def __init__(self, grid: Grid) -> None:
        super().__init__()
        self.grid = grid
        self.enter = nn.Conv2d(grid.channels, grid.width, 3, padding=1)
        self.blocks = nn.ModuleList(Residual(grid.width, grid.norm) for _ in range(grid.layers))
        self.head = nn.Linear(grid.width, grid.outputs)

    def forward(self, patches: Tensor) -> Tensor:
        """Answers, from the mean over all places."""
        side = math.isqrt(self.grid.patches)
        square = patches.transpose(1, 2).reshape(len(patches), -1, side, side)
        x = self.enter(square).relu()
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean((2, 3)))


def build(grid: Grid, seed: int) -> Cnn:
    """A fresh network; the same seed gives the same weights, and the global random state stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Cnn(grid)
