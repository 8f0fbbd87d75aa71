"""What a reader gives for every unit of a task, the number that comes of it, and the verdict on a repair.

Intervals are bootstrap percentiles over units (pairs, examples, queries, sequences). The places that are
drawn depend on the seed and on n alone, so that two outcomes of the same units are drawn alike, and the
draws of their difference are paired.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from isoscope.results.reading import Reading

Array = np.ndarray[Any, Any]
DRAWS = 2000
ENDS = (2.5, 97.5)  # of a hundred
HELPED, HURT, SAME, CANNOT, UNDEFINED = "helped", "hurt", "no difference", "cannot matter", "undefined"
MAIN = "main"  # the tag of a score that stands for its task where there is room for one of each
EQUAL = 1e-5  # of 1: how far what a reader gives may be off where a map cannot matter: a search ends near
_WITHOUT = 0.05  # share of draws that may have no score
_AT_ONCE = 1 << 21  # places that are drawn at a time


@dataclass(frozen=True, eq=False)
class Outcome:
    """One score of one task.

    `score` takes places [b, n] among the units and gives the score of each row, [b]. `seen` is all that the
    reader gave, by which two outcomes are held to be equal. `reader` says what it is blind to, `sign` is −1
    where less is better, `null` is chance, `tag` is `MAIN` or empty.
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
    tag: str = ""

    @cached_property
    def value(self) -> float:
        """The score of all units."""
        return float(self.score(np.arange(self.n)[None])[0]) if self.n else math.nan

    def reading(self, seed: int) -> Reading:
        """The score with its 95 % interval."""
        return Reading(self.value, self.n, self.null, *ends(drawn(self, seed)), self.note, self.tag)


@lru_cache(maxsize=32)  # what was there before is held against every repair
def drawn(outcome: Outcome, seed: int) -> Array:
    """The score of each of `DRAWS` draws of an outcome's units with replacement, [draws]."""
    source, n = np.random.default_rng([seed, outcome.n]), outcome.n
    rows = max(1, _AT_ONCE // max(n, 1))
    sizes = [min(rows, DRAWS - start) for start in range(0, DRAWS, rows)]
    return np.concatenate([outcome.score(source.integers(0, n, (size, n))) for size in sizes])


def mean_of(hits: Array) -> Callable[[Array], Array]:
    """The score that is the mean over units of a number per unit, [n]."""
    return lambda places: hits[places].mean(1)


def ends(draws: Array) -> tuple[float, float]:
    """The middle 95 % of draws that have a score; NaN where more than one in twenty has none."""
    there = draws[~np.isnan(draws)]
    if len(there) < (1 - _WITHOUT) * len(draws):
        return math.nan, math.nan
    low, high = np.percentile(there, ENDS)
    return float(low), float(high)


@dataclass(frozen=True)
class Change:
    """How a repair changed a score: `by` is after less before with its paired 95 % interval; the verdict."""

    measure: str
    by: Reading
    per: str
    verdict: str
    why: str = ""

    @property
    def least(self) -> float:
        """The smallest difference that would have shown: half of the interval's width."""
        return (self.by.high - self.by.low) / 2

    def said(self) -> str:
        """The verdict in words."""
        if self.verdict == SAME:
            shown = f"one of {self.least:.2g} would have shown" if self.least else "all are alike"
            told = f"{SAME} at n = {self.by.n:,} {self.per} ({shown})"
            return f"{told}; {self.why}" if self.why else told
        return f"{self.verdict}: {self.why}" if self.why else self.verdict

    def noted(self) -> Reading:
        """The difference, tagged with the verdict, which its note explains."""
        return replace(self.by, note=self.said(), tag=self.verdict)


def changed(before: Outcome, after: Outcome, reason: str, seed: int) -> Change:
    """Hold one outcome against another of the same units; `reason` is why the map cannot matter, or empty.

    A reason alone is no verdict: what the reader gave must be equal. Where it is not, the measured difference
    counts, and the contradiction is told.
    """
    value = after.value - before.value
    if math.isnan(value) or before.n != after.n:
        by = Reading(value, after.n, 0.0)
        return Change(before.measure, by, after.per, UNDEFINED, "a score has no value")
    by = Reading(value, after.n, 0.0, *ends(drawn(after, seed) - drawn(before, seed)))
    found = Change(before.measure, by, after.per, SAME)
    if reason:
        off = float(np.abs(after.seen - before.seen).max(initial=0.0))
        if off <= EQUAL * float(np.abs(before.seen).max(initial=1.0)):
            return replace(found, verdict=CANNOT, why=f"{reason}; found equal to {max(off, 1e-16):.0e}")
        reason = f"{reason} should not matter, yet what the reader gives differs by {off:.1e}"
    if not by.bounded:
        return replace(found, verdict=UNDEFINED, why=f"{after.n:,} {after.per} are too few for an interval")
    if not by.excludes(0):
        return replace(found, why=reason)
    return replace(found, verdict=HELPED if by.above(0) is (after.sign > 0) else HURT, why=reason)
