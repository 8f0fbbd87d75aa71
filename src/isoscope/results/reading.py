"""A Reading is a number with its uncertainty: one type from the record to the page and the papers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoscope.formatting import short, spread


@dataclass(frozen=True, eq=False)
class Influence:
    """How much each jackknife group of sequences moves an estimate, by which two readings are paired.

    The standard error is the root of Σ `each`²; with the t quantile of `degrees` it makes the interval about
    `centre`. It is linear in the estimate: over the same groups, that of a difference is the difference.
    `inputs` says which inputs were read and which positions counted; it is empty within one record.
    """

    centre: float
    degrees: float
    each: NDArray[np.float64]  # [G]
    inputs: str = ""

    @classmethod
    def of(cls, centre: float, degrees: float, each: NDArray[np.float64]) -> Influence | None:
        """None where a number is not finite: such an estimate has no interval."""
        return cls(centre, degrees, each) if np.isfinite([centre, degrees, each.sum()]).all() else None


@dataclass(frozen=True)
class Reading:
    """A value, how many units it is of, its null, its 95 % interval and a note; NaN for what does not exist.

    `tag` is the class that a value stands for (a regime, a verdict) and `p` the p-value of its test. The note
    is for people alone: no code reads it. By their `influence` two readings of the same inputs are `paired`.
    Nothing is decided without an interval: a reading that has none lies neither above nor below any level.
    """

    value: float
    n: int
    null: float = math.nan
    low: float = math.nan
    high: float = math.nan
    note: str = ""
    tag: str = ""
    p: float = math.nan
    influence: Influence | None = field(default=None, repr=False, compare=False)

    @staticmethod
    def of(line: Any) -> Reading:
        """The reading in a line of a table with the columns value, n, low and high."""
        return Reading(float(line["value"]), int(line["n"]), low=float(line["low"]), high=float(line["high"]))

    @property
    def known(self) -> bool:
        """Whether the value is finite."""
        return math.isfinite(self.value)

    @property
    def bounded(self) -> bool:
        """Whether there is an interval: both ends are finite."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    def above(self, level: float) -> bool:
        """Whether the whole interval lies above a level; False without an interval.

        >>> Reading(0.5, 9, low=0.4, high=0.6).above(0.3), Reading(0.5, 9).above(0.3)
        (True, False)
        """
        return self.bounded and self.low > level

    def below(self, level: float) -> bool:
        """Whether the whole interval lies below a level; False without an interval."""
        return self.bounded and self.high < level

    def excludes(self, level: float) -> bool:
        """Whether there is an interval and the level lies outside it."""
        return self.above(level) or self.below(level)

    def meets(self, start: float, end: float) -> bool:
        """Whether the interval has more than an end in common with this span."""
        return self.bounded and self.low < end and self.high > start

    @property
    def interval(self) -> str:
        """The interval as text; empty where there is none."""
        return spread([self.low, self.high]) if self.bounded else ""

    @property
    def measured(self) -> str:
        """The value and its interval, as a sentence has them.

        >>> Reading(0.5, 9, low=0.4, high=0.6).measured, Reading(0.5, 9).measured
        ('0.5 (95 % interval 0.4–0.6)', '0.5')
        """
        return f"{short(self.value)} (95 % interval {self.interval})" if self.bounded else short(self.value)

    @property
    def said(self) -> str:
        """The value with its interval in brackets, or the words that there is none.

        >>> Reading(0.3125, 5, low=0.25, high=0.375).said, Reading(0.5, 1).said
        ('0.312 [0.25, 0.375]', '0.5 [no interval]')
        """
        ends = f"{short(self.low)}, {short(self.high)}" if self.bounded else "no interval"
        return f"{short(self.value)} [{ends}]"

    @property
    def brief(self) -> str:
        """The value and its interval without the words "95 % interval", for later numbers of a sentence."""
        return f"{short(self.value)} ({self.interval})" if self.bounded else short(self.value)
