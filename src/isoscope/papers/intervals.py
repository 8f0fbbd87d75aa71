"""A number with its 95 % interval, and the ways in which claims come by one.

Nothing is decided without an interval: where none can be had (fewer than three seeds, a row without one) its
ends are NaN, and it lies neither above nor below anything.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd
from scipy import stats

from isoscope.formatting import short

LEAST = 3  # seeds for an interval


@dataclass(frozen=True)
class Interval:
    """A value, the ends of its 95 % interval (NaN where there is none), and how many it is of."""

    value: float
    low: float
    high: float
    n: int

    @property
    def bounded(self) -> bool:
        """Whether there is an interval at all."""
        return not (math.isnan(self.low) or math.isnan(self.high))

    def above(self, level: float) -> bool:
        """Whether all of it is above a level."""
        return self.low > level

    def below(self, level: float) -> bool:
        """Whether all of it is below a level."""
        return self.high < level

    def within(self, least: float, most: float) -> Interval:
        """The part of it that the quantity can take: a cosine lies between −1 and 1, whatever t says."""
        low, high = (min(max(end, least), most) for end in (self.low, self.high))
        return replace(self, low=low, high=high) if self.bounded else self

    def widened(self, looks: int) -> Interval:
        """As wide as so many looks must be, to be wrong together as seldom as one is (Bonferroni).

        >>> over([1.0, 2.0, 3.0]).widened(4).said
        '2 [−3.12, 7.12]'
        """
        if looks < 2 or not self.bounded:
            return self
        wide, own = (float(stats.t.ppf(1 - 0.025 / k, max(1, self.n - 1))) for k in (looks, 1))
        low, high = (self.value + (end - self.value) * wide / own for end in (self.low, self.high))
        return replace(self, low=low, high=high)

    @property
    def said(self) -> str:
        """As a sentence has it.

        >>> Interval(0.3125, 0.25, 0.375, 5).said, Interval(0.5, math.nan, math.nan, 1).said
        ('0.312 [0.25, 0.375]', '0.5 [no interval]')
        """
        ends = f"{short(self.low)}, {short(self.high)}" if self.bounded else "no interval"
        return f"{short(self.value)} [{ends}]"


def unbounded(value: float, n: int = 1) -> Interval:
    """A value that has no interval."""
    return Interval(float(value), math.nan, math.nan, n)


def over(values: Sequence[float]) -> Interval:
    """The mean of independent values (seeds, sequences): mean ± t₀.₉₇₅(n − 1)·std/√n, from three on.

    >>> over([1.0, 2.0, 3.0]).said, over([1.0, 3.0]).said
    ('2 [−0.484, 4.48]', '2 [no interval]')
    """
    held = np.asarray([value for value in values if not math.isnan(value)], dtype=float)
    if len(held) < LEAST:
        return unbounded(float(held.mean()) if len(held) else math.nan, len(held))
    half = float(stats.t.ppf(0.975, len(held) - 1) * held.std(ddof=1) / math.sqrt(len(held)))
    mean = float(held.mean())
    return Interval(mean, mean - half, mean + half, len(held))


def paired(first: Mapping[Hashable, float], second: Mapping[Hashable, float]) -> Interval:
    """The mean of second − first over the keys (seeds) that both have.

    >>> paired({0: 1.0, 1: 2.0, 2: 3.0}, {0: 2.0, 1: 3.0, 2: 4.0, 3: 9.0}).said
    '1 [1, 1]'
    """
    return over([second[key] - first[key] for key in first if key in second])


def correlation(
    x: Sequence[float], y: Sequence[float], kind: Literal["spearman", "pearson"] = "spearman"
) -> Interval:
    """A correlation with Fisher's interval: tanh(artanh r ± 1.96·s), s² = 1/(n − 3), of ranks (1 + r²/2)/(n − 3).

    It takes pairs for independent. Layers of one model are not: there it is nominal, and a claim must say so.
    """  # noqa: E501
    pairs = np.asarray([(a, b) for a, b in zip(x, y, strict=True) if not math.isnan(a + b)], dtype=float)
    if len(pairs) < 4 or min(np.ptp(pairs, axis=0)) == 0:
        return unbounded(math.nan, len(pairs))
    found = stats.spearmanr(*pairs.T) if kind == "spearman" else stats.pearsonr(*pairs.T)
    r = float(np.clip(found.statistic, -1 + 1e-12, 1 - 1e-12))
    spread = math.sqrt((1 + r * r / 2 if kind == "spearman" else 1.0) / (len(pairs) - 3))
    low, high = (math.tanh(math.atanh(r) + sign * 1.959964 * spread) for sign in (-1, 1))
    return Interval(r, low, high, len(pairs))


def of_row(row: pd.Series) -> Interval:
    """The interval that a row has of its own, over sequences."""
    return Interval(float(row["value"]), float(row["low"]), float(row["high"]), int(row["n"]))


def by_seed(rows: pd.DataFrame, statistic: Literal["mean", "max", "min"] = "mean") -> dict[Hashable, float]:
    """One value a seed: the mean (or largest, or least) of its rows' values; a seed is a `revision`."""
    grouped = rows[rows["value"].notna()].groupby("revision", sort=True)["value"]
    return {str(seed): float(value) for seed, value in grouped.agg(statistic).items()}


def over_seeds(rows: pd.DataFrame, statistic: Literal["mean", "max", "min"] = "mean") -> Interval:
    """The interval over seeds of each seed's mean (or largest, or least)."""
    return over(list(by_seed(rows, statistic).values()))


def apart(first: Sequence[float], second: Sequence[float]) -> Interval:
    """The difference of two means of unpaired values, second − first, with Welch's t interval.

    >>> apart([1.0, 2.0, 3.0], [11.0, 12.0, 13.0]).said
    '10 [7.73, 12.3]'
    """
    pair = [np.asarray([v for v in part if not math.isnan(v)], dtype=float) for part in (first, second)]
    count = sum(map(len, pair))
    if min(map(len, pair)) < LEAST:
        return unbounded(float(pair[1].mean() - pair[0].mean()) if min(map(len, pair)) else math.nan, count)
    low, high = stats.ttest_ind(pair[1], pair[0], equal_var=False).confidence_interval(0.95)
    return Interval(float(pair[1].mean() - pair[0].mean()), float(low), float(high), count)
