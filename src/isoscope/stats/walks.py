"""Records of inputs as a walk: how far they move in s positions, and the covariance of one step.

The theory of `geometry.propagation` takes inputs for a random walk. `WalkSpread` says how far that holds,
`Increments` gives the Σ that enters it. Both merge; neither keeps an input.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812


@dataclass(frozen=True, eq=False)
class WalkSpread:
    """How far inputs move in s = 1, 2, 4, … positions: sums that merge.

    E‖x_{t+s} − x_t‖² grows as s where they walk at random, and not at all where they are stationary.
    """

    squares: Tensor  # [lags], Σ‖x_{t+s} − x_t‖²
    pairs: Tensor  # [lags], how many pairs

    @classmethod
    def of(cls, inputs: Tensor, counts: Tensor) -> WalkSpread:
        """Of inputs [b, t, d]; both ends of a pair must count, [b, t], and be finite."""
        found = []
        for lag in (2**power for power in range((inputs.shape[1] - 1).bit_length())):
            moved = [((move**2).sum().item(), len(move)) for move in _moves(inputs, counts, lag)]
            found.append([sum(part) for part in zip(*moved, strict=True)])
        return cls(*torch.tensor(found, dtype=torch.float64).reshape(-1, 2).T)

    def merge(self, other: WalkSpread) -> WalkSpread:
        """The same of both together; the longer of them says how many lags."""
        size = max(len(self.pairs), len(other.pairs))
        mine, its = (
            F.pad(torch.stack([it.squares, it.pairs]), (0, size - len(it.pairs))) for it in (self, other)
        )
        return WalkSpread(*(mine + its))

    @property
    def lags(self) -> Tensor:
        """s, [lags]."""
        return 2.0 ** torch.arange(len(self.pairs), dtype=torch.float64)

    @property
    def curve(self) -> Tensor:
        """The mean of ‖x_{t+s} − x_t‖² at each lag, [lags]; NaN where no pair counts."""
        return self.squares / self.pairs

    @property
    def slope(self) -> float:
        """The slope of log curve on log s, weighted by pairs: 1 for a random walk, 0 if stationary."""
        kept = self.squares > 0
        weight, x, y = self.pairs[kept], self.lags[kept].log(), self.curve[kept].log()
        if len(x) < 2:
            return math.nan
        apart = weight * (x - (weight * x).sum() / weight.sum())
        return float((apart * y).sum() / (apart * x).sum())


@dataclass(frozen=True, eq=False)
class Increments:
    """The increments x_{t+1} − x_t of inputs: number, mean [d] and centred scatter [d, d]; they merge."""

    number: int
    mean: Tensor
    scatter: Tensor

    @classmethod
    def of(cls, inputs: Tensor, counts: Tensor) -> Increments:
        """Of inputs [b, t, d], in float64; both positions must count, [b, t], and be finite."""
        width = inputs.shape[2]
        found = cls(0, inputs.new_zeros(width).double(), inputs.new_zeros(width, width).double())
        for moves in _moves(inputs, counts, 1):
            if len(moves):
                apart = moves - moves.mean(0)
                found = found.merge(cls(len(moves), moves.mean(0), apart.mT @ apart))
        return found

    def merge(self, other: Increments) -> Increments:
        """The same of both together, by Chan's rule."""
        number, apart = self.number + other.number, other.mean - self.mean
        share = other.number / max(number, 1)
        scatter = self.scatter + other.scatter + self.number * share * torch.outer(apart, apart)
        return Increments(number, self.mean + share * apart, scatter)

    @property
    def covariance(self) -> Tensor:
        """Σ of the increments, [d, d]; NaN for fewer than two."""
        return self.scatter / (self.number - 1 if self.number > 1 else math.nan)


def _moves(inputs: Tensor, counts: Tensor, lag: int) -> Iterator[Tensor]:
    """x_{t+lag} − x_t in float64, [pairs, d], of one sequence after the other."""
    for sequence, counted in zip(inputs, counts & inputs.isfinite().all(-1), strict=True):
        both = counted[lag:] & counted[:-lag]
        yield sequence[lag:][both].double() - sequence[:-lag][both].double()
