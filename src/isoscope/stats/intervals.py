"""95 % intervals by the jackknife that leaves out a group of whole sequences at a time.

Groups differ in size, so the unequal form is used (Busing, Meijer & van der Leeden 1999), with the t quantile
of G−1 degrees, G the number of groups of equal size that would weigh the same: with G all groups, ragged
sequences cover .82 to .88 instead of .95. Fewer than 8 sequences give none: the quantile would be a guess
about tails. Sequences that share a unit, such as a document, are in one group. How many units there are is
then not known, since those of a unit may come in different batches, and 8 groups are asked for. Intervals of
many numbers over the same groups are taken at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from torch import Tensor

Array = NDArray[np.float64]

LEAST_SEQUENCES, LEAST_GROUPS = 8, 5
LEVEL = 0.95
FEW = f"no interval: fewer than {LEAST_SEQUENCES} different sequences"
FEW_UNITS = f"no interval: fewer than {LEAST_SEQUENCES} groups of documents"
quiet = np.errstate(divide="ignore", invalid="ignore", over="ignore")  # 0/0 is NaN, and who reads it says why


def array(x: Tensor) -> Array:
    """A tensor as readings take it: near, in float64."""
    found: Array = x.detach().cpu().double().numpy()
    return found


def left(sums: Tensor) -> Array:
    """Sums by group [G, …] over all groups, then with each group left out in turn: [1 + G, …].

    >>> import torch
    >>> left(torch.tensor([1.0, 2.0, 4.0])).tolist()
    [7.0, 6.0, 5.0, 3.0]
    """
    each = array(sums)
    whole = each.sum(0, keepdims=True)
    return np.concatenate([whole, whole - each])


def product(one: Array, other: Array) -> Array:
    """The inner products of vectors […, d]."""
    return np.einsum("...d,...d->...", one, other)


def jackknife(value: float, without: Tensor, count: Tensor) -> tuple[float, float]:
    """The interval for `value`, given it with each group left out [G] and the groups' sizes [G].

    >>> import torch
    >>> data = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)
    >>> low, high = jackknife(2.5, (data.sum() - data) / 3, torch.ones(4))
    >>> f"{low:.3f} {high:.3f}"  # as the t interval of the mean
    '0.446 4.554'
    """
    low, high = Groups.of(array(count)).interval(np.concatenate([[value], array(without)]))
    return float(low), float(high)


@dataclass(frozen=True)
class Groups:
    """What leaving out each group weighs: its share s of the whole, and the quantile of t.

    Many numbers [m] may be read over groups of the same sizes [G, 1], or of sizes of their own [G, m].
    """

    used: NDArray[np.bool_]  # [G, m] whether leaving it out leaves something, and something else
    odds: Array  # [G, m] 1/s − 1
    weight: Array  # [G, m] 1/(odds·K), K the number of groups used; 0 where it is not
    degrees: Array  # [m] of t
    quantile: Array  # [m]

    @classmethod
    def of(cls, count: Array) -> Groups:
        """From the groups' sizes: of the same data they are the same at every site."""
        return _weighed(count.tobytes(), count.shape)

    @quiet
    def error(self, found: Array) -> Array:
        """The standard error [m] of a number, given it over all groups and without each: [1 + G, m]."""
        apart = self._apart(found)
        return np.sqrt((self.weight * apart * apart).sum(0))

    @quiet
    def moves(self, found: Array) -> tuple[float, float, Array]:
        """Of [1 + G] or [1 + G, 1]: the number, the degrees of t, and by how much each group moves it [G].

        The sum of the squares is the squared standard error.
        """
        each = (np.sqrt(self.weight) * self._apart(found)).ravel()
        return float(found.ravel()[0]), float(self.degrees.ravel()[0]), each

    def _apart(self, found: Array) -> Array:
        """How far each group's pseudo-value lies from their mean.

        With d what leaving out a group changes, that is Σ(1 − s)d − (1/s − 1)d.
        """
        pulled = np.where(self.used, self.odds * (found[1:] - found[0]), 0)
        apart: Array = (pulled / (self.odds + 1)).sum(0) - pulled
        return apart

    def interval(self, found: Array) -> tuple[Array, Array]:
        """The ends of the interval, [m] each, of a number over all groups and without each: [1 + G, m]."""
        reach = self.quantile * self.error(found)
        return found[0] - reach, found[0] + reach

    @quiet
    def interval_of_square(self, square: Array, along: Array) -> tuple[Array, Array]:
        """The same of ‖μ‖², from its unbiased estimate and the mean along its own direction, [1 + G, m].

        Close to its noise the square hardly moves when a group is left out, and its own interval covers .82.
        So it reaches up at least as far as that of the length in one dimension, (√(square + e²) + t·e)².
        """
        low, high = self.interval(square)
        error = self.error(along)
        least = (np.sqrt(np.maximum(square[0], 0) + error**2) + self.quantile * error) ** 2
        return low, np.where(least > high, least, high)  # a mean of 0 has no direction: there NaN


@lru_cache(maxsize=256)
@quiet
def _weighed(sizes: bytes, shape: tuple[int, ...]) -> Groups:
    count = np.frombuffer(sizes).reshape(shape)
    every = count.sum(0)
    used = (count > 0) & (count < every)
    number = used.sum(0)
    odds = np.where(used, every / count - 1, 1)
    square = count * count
    equal_groups = square.sum(0) ** 2 / (square * square).sum(0)
    degrees = np.where(number < 2, np.nan, np.maximum(equal_groups - 1, 1))
    quantile = np.asarray(special.stdtrit(degrees, (1 + LEVEL) / 2), np.float64)
    return Groups(used, odds, used / (odds * number), degrees, quantile)


def enough(sequences: Tensor | Array, joint: Tensor | float = 0) -> bool:
    """Whether the groups [G] hold units enough for an interval; equal sequences share a group.

    `joint` is how many sequences share their unit with others.
    """
    return bool(have_enough(sequences, joint))


def few(joint: Tensor | float) -> str:
    """Why there is no interval, where `joint` sequences share their unit with others."""
    return FEW_UNITS if joint > 0 else FEW


def have_enough(sequences: Any, joint: Tensor | float = 0) -> Any:
    """Whether the groups of many clouds side by side hold enough, [G, m] to [m]."""
    groups = (sequences > 0).sum(0)
    return ((groups if joint > 0 else sequences.sum(0)) >= LEAST_SEQUENCES) & (groups >= LEAST_GROUPS)
