"""The record of where last queries attend: their weights as a density over relative position.

Key t of T stands for the stretch ((t−1)/T, t/T] and carries its weight evenly over it. So sequences of any
length share one axis, uniform attention is 1 everywhere whatever T is, and the mean over bins is always 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from isoscope.stats.base import added

BINS = 32


def density(weights: Tensor, shown: Tensor | None = None, bins: int = BINS) -> Tensor:
    """T·(the mean over each of `bins` equal stretches) of `weights` [..., s], [..., bins].

    `shown` [..., s] says which keys there are, in order; T is their number. Weights that add up to 1 make a
    density; any other function of position, over T, is averaged in the same way.

    >>> density(torch.tensor([0.0, 0.5, 0.5]), bins=2).tolist()  # the middle key lies half in either
    [0.5, 1.5]
    """
    weights = weights.double()
    shown = torch.ones_like(weights, dtype=torch.bool) if shown is None else shown
    order = torch.argsort((~shown).to(torch.uint8), dim=-1, stable=True)  # the keys there are, to the front
    front = torch.where(shown, weights, 0.0).gather(-1, order)
    below = torch.cat([torch.zeros_like(front[..., :1]), front.cumsum(-1)], dim=-1)
    number = shown.sum(-1, keepdim=True)
    edge = torch.arange(bins + 1, device=weights.device)
    whole, rest = edge * number // bins, (edge * number % bins).double() / bins  # whole edges are met exactly
    next_one = (whole + 1).clamp_max(below.shape[-1] - 1)
    at = below.gather(-1, whole)
    reached = at + rest * (below.gather(-1, next_one) - at)
    return bins * reached.diff(dim=-1)


def averaged(profile: Tensor, bins: int = BINS) -> Tensor:
    """A function of positions 1 … T, [..., T], averaged over each of `bins` equal stretches of t/T.

    >>> averaged(torch.tensor([1.0, 3.0]), bins=4).tolist()
    [1.0, 1.0, 3.0, 3.0]
    """
    return density(profile / profile.shape[-1], bins=bins)


@dataclass(frozen=True, eq=False)
class Profiles:
    """Sums over the last queries of sequences: their densities, how many, their keys, what came after."""

    total: Tensor  # [h, bins] Σ density
    rows: Tensor  # [h] last queries
    keys: Tensor  # [h] Σ T
    after: Tensor  # [h] Σ of the weight on keys after the query, which the density leaves out

    @classmethod
    def of(cls, scores: Tensor, visible: Tensor, own: Tensor, counts: Tensor) -> Profiles:
        """Of scores [b, h, s] of one query a sequence, the keys it sees, its place [b], and if it counts.

        The density is the softmax over the keys up to its own. Rows with fewer than two of those, or with a
        score that is not finite, are left out.
        """
        place = torch.arange(scores.shape[-1], device=scores.device)
        before = visible & (place <= own[:, None, None])
        scores = scores.double()
        usable = counts[:, None] & (before.sum(-1) > 1) & (scores.isfinite() | ~visible).all(-1)
        dense, seen = (_softmax(scores, some & usable[..., None]) for some in (before, visible))
        after = torch.where(place > own[:, None, None], seen, 0.0).sum(-1)
        shown = before & usable[..., None]
        return cls(
            density(dense, shown).sum(0),
            usable.sum(0).double(),
            shown.sum((0, -1)).double(),
            after.sum(0),
        )

    def merge(self, other: Profiles) -> Profiles:
        """Add field by field."""
        return added(self, other)

    def beside_heads(self, other: Profiles) -> Profiles:
        """The heads of both, side by side."""
        return Profiles(
            *(
                torch.cat([mine, its])
                for mine, its in zip(vars(self).values(), vars(other).values(), strict=True)
            )
        )

    @property
    def mean(self) -> Tensor:
        """The mean density, [h, bins]; NaN for a head without a row."""
        return self.total / self.rows[:, None]


def _softmax(scores: Tensor, shown: Tensor) -> Tensor:
    """The softmax over the keys shown, zero elsewhere; all zero where none is."""
    found = scores.masked_fill(~shown, -torch.inf).softmax(-1)
    return found.masked_fill(~shown, 0.0)
