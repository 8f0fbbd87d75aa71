"""What a reader gives for every unit of a task, the number that comes of it, and how far it is sure.

Intervals are bootstrap percentiles over units (pairs, examples, queries, sequences). The places that are
drawn depend on the seed and on n alone, so that two outcomes of the same units are drawn alike, and the
draws of their difference are paired.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from isoscope.results.reading import Reading

Array = np.ndarray[Any, Any]
DRAWS = 2000
ENDS = (2.5, 97.5)  # of a hundred
_WITHOUT = 0.05  # share of draws that may have no score
_AT_ONCE = 1 << 21  # places that are drawn at a time


@dataclass(frozen=True, eq=False)
class Outcome:
    """One score of one task.

    `score` takes places [b, n] among the units and gives the score of each row, [b]. `seen` is all that the
    reader gave, by which two outcomes are held to be equal. `reader` says what it is blind to, `sign` is −1
    where less is better, `null` is chance.
    """

    measure: str
    per: str
    n: int
    score: Callable[[Array], Array] = field(repr=False)
    seen: Array = field(repr=False)
    reader: str
    sign: int = 1
    null: float = math.nan
    left_out: int = 0
    note: str = ""

    @cached_property
    def value(self) -> float:
        """The score of all units."""
        return float(self.score(np.arange(self.n)[None])[0]) if self.n else math.nan

    def drawn(self, seed: int) -> Array:
        """The score of each of `DRAWS` draws with replacement, [draws]."""
        return _drawn(self, seed)

    def reading(self, seed: int) -> Reading:
        """The score with its 95 % interval."""
        return Reading(self.value, self.n, self.null, *ends(self.drawn(seed)), self.note)


@lru_cache(maxsize=32)  # what was there before is held against every repair
def _drawn(outcome: Outcome, seed: int) -> Array:
    return np.concatenate([outcome.score(places) for places in _places(outcome.n, seed)])


def mean_of(hits: Array) -> Callable[[Array], Array]:
    """The score that is the mean over units of a number per unit, [n]."""
    return lambda places: hits[places].mean(1)


def ends(draws: Array) -> tuple[float, float]:
    """The middle 95 % of draws that have a score; NaN where more than one in twenty has none.

    Of few pairs with a high score a draw may have none, and then no correlation.

    >>> ends(np.array([1.0] * 50 + [3.0] * 50 + [np.nan]))
    (1.0, 3.0)
    """
    there = draws[~np.isnan(draws)]
    if len(there) < (1 - _WITHOUT) * len(draws):
        return math.nan, math.nan
    low, high = np.percentile(there, ENDS)
    return float(low), float(high)


def _places(n: int, seed: int) -> Iterator[Array]:
    source = np.random.default_rng([seed, n])
    rows = max(1, _AT_ONCE // max(n, 1))
    for start in range(0, DRAWS, rows):
        yield source.integers(0, n, (min(rows, DRAWS - start), n))
