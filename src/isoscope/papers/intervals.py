"""Numbers of claims with their 95 % intervals; where none can be had its ends are NaN."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd
from scipy import stats

from isoscope.results.reading import Reading

LEAST = 3  # seeds for an interval


def within(found: Reading, least: float, most: float) -> Reading:
    """Cut an interval to what the quantity can be: a cosine lies between −1 and 1, whatever t says."""
    low, high = (min(max(end, least), most) for end in (found.low, found.high))
    return replace(found, low=low, high=high) if found.bounded else found


def widened(found: Reading, looks: int) -> Reading:
    """Widen an interval so that this number of looks together is wrong as seldom as one (Bonferroni)."""
    if looks < 2 or not found.bounded:
        return found
    wide, own = (float(stats.t.ppf(1 - 0.025 / k, max(1, found.n - 1))) for k in (looks, 1))
    low, high = (found.value + (end - found.value) * wide / own for end in (found.low, found.high))
    return replace(found, low=low, high=high)


def over(values: Sequence[float]) -> Reading:
    """The mean of independent values (seeds, sequences): mean ± t₀.₉₇₅(n − 1)·std/√n, from three on."""
    held = np.asarray([value for value in values if not math.isnan(value)], dtype=float)
    mean = float(held.mean()) if len(held) else math.nan
    if len(held) < LEAST:
        return Reading(mean, len(held))
    half = float(stats.t.ppf(0.975, len(held) - 1) * held.std(ddof=1) / math.sqrt(len(held)))
    return Reading(mean, len(held), low=mean - half, high=mean + half)


def paired(first: Mapping[Hashable, float], second: Mapping[Hashable, float]) -> Reading:
    """The mean of second − first over the keys (seeds) that both have."""
    return over([second[key] - first[key] for key in first if key in second])


def correlation(
    x: Sequence[float], y: Sequence[float], kind: Literal["spearman", "pearson"] = "spearman"
) -> Reading:
    """A correlation with Fisher's interval: tanh(artanh r ± 1.96·s), s² = 1/(n − 3), of ranks (1 + r²/2)/(n − 3).

    It takes pairs for independent. Layers of one model are not: there it is nominal, and a claim must say so.
    """  # noqa: E501
    pairs = np.asarray([(a, b) for a, b in zip(x, y, strict=True) if not math.isnan(a + b)], dtype=float)
    if len(pairs) < 4 or min(np.ptp(pairs, axis=0)) == 0:
        return Reading(math.nan, len(pairs))
    found = stats.spearmanr(*pairs.T) if kind == "spearman" else stats.pearsonr(*pairs.T)
    r = float(np.clip(found.statistic, -1 + 1e-12, 1 - 1e-12))
    spread = math.sqrt((1 + r * r / 2 if kind == "spearman" else 1.0) / (len(pairs) - 3))
    low, high = (math.tanh(math.atanh(r) + sign * 1.959964 * spread) for sign in (-1, 1))
    return Reading(r, len(pairs), low=low, high=high)


def of_row(row: pd.Series) -> Reading:
    """The reading of one row of a table, with the row's own interval, over sequences."""
    return Reading(float(row["value"]), int(row["n"]), low=float(row["low"]), high=float(row["high"]))


def by_seed(rows: pd.DataFrame, statistic: Literal["mean", "max", "min"] = "mean") -> dict[Hashable, float]:
    """One value a seed: the mean (or largest, or least) of its rows' values; a seed is a `revision`."""
    grouped = rows[rows["value"].notna()].groupby("revision", sort=True)["value"]
    return {str(seed): float(value) for seed, value in grouped.agg(statistic).items()}


def over_seeds(rows: pd.DataFrame, statistic: Literal["mean", "max", "min"] = "mean") -> Reading:
    """The interval over seeds of each seed's mean (or largest, or least)."""
    return over(list(by_seed(rows, statistic).values()))


def apart(first: Sequence[float], second: Sequence[float]) -> Reading:
    """The difference of two means of unpaired values, second − first, with Welch's t interval."""
    pair = [np.asarray([v for v in part if not math.isnan(v)], dtype=float) for part in (first, second)]
    count, fewest = sum(map(len, pair)), min(map(len, pair))
    apart = float(pair[1].mean() - pair[0].mean()) if fewest else math.nan
    if fewest < LEAST:
        return Reading(apart, count)
    low, high = stats.ttest_ind(pair[1], pair[0], equal_var=False).confidence_interval(0.95)
    return Reading(apart, count, low=float(low), high=float(high))
