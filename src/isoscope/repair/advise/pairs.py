"""What advice reads off pairs of vectors: where their cosines lie, who is near whom, which dimensions do it.

Pairs inside one unit (a sequence, or copies of one vector) never count. Intervals are over units: the
jackknife for means and shares. Of a quantile it is not valid; there disjoint groups of units are read one by
one and their t interval is taken: to first order a group of m out of n varies √(n/m) times as much as the
whole, so the mean over n/m groups varies as the whole does.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor

from isoscope.repair.hubs import NEAREST, by_chance, occurrences, skewness_of_moments
from isoscope.results.reading import Influence, Reading
from isoscope.stats.intervals import LEVEL, Groups, have_enough, left
from isoscope.stats.seen import GROUPS, Vectors, mix
from isoscope.stats.sums import Sums

QUANTILES = (1, 5, 25, 50, 75, 95, 99)  # per cent of the pairs that lie below
FEWEST_IN_GROUP = 24  # units, so that a group has 276 pairs and its 1 % quantile is not its least
MOST_GROUPS, LEAST_GROUPS = 16, 8
DRAWS = 64
Floats = NDArray[np.float64]


def unit_groups(unit: Tensor, many: int = GROUPS) -> Tensor:
    """The group [n] that each vector's unit [n] falls into, by a hash of its number."""
    return mix(unit) % many


def cosines(points: Tensor, unit: Tensor) -> Tensor:
    """The cosine of every pair, [n, n] in float64; −∞ where both are of one unit."""
    points = points.double()
    pointing = points / points.norm(dim=1, keepdim=True).clamp_min(torch.finfo(torch.float64).tiny)
    return (pointing @ pointing.T).masked_fill(unit[:, None] == unit[None, :], -math.inf)


def quantiles(table: Tensor, unit: Tensor) -> dict[int, Reading]:
    """Where so many per cent of the cosines [n, n] lie below, by the per cent."""
    units = len(torch.unique(unit))
    many = min(MOST_GROUPS, units // FEWEST_IN_GROUP)
    value = _quantiles(table)
    reach = np.full(len(QUANTILES), math.nan)
    if many >= LEAST_GROUPS:
        group = unit_groups(torch.unique(unit, return_inverse=True)[1], many)
        each = np.stack([_quantiles(table[group == g][:, group == g]) for g in range(many)])
        spread = each.std(axis=0, ddof=1) / math.sqrt(many)
        reach = stats.t.ppf((1 + LEVEL) / 2, many - 1) * spread
    return {
        per_cent: Reading(float(value[i]), len(table), math.nan, float(value[i] - r), float(value[i] + r))
        for i, (per_cent, r) in enumerate(zip(QUANTILES, reach, strict=True))
    }


def _quantiles(table: Tensor) -> Floats:
    pairs = table[torch.ones_like(table, dtype=torch.bool).triu(1) & table.isfinite()].numpy()
    if len(pairs) == 0:
        return np.full(len(QUANTILES), math.nan)
    return np.asarray(np.quantile(pairs, np.array(QUANTILES) / 100), np.float64)


def nearest(table: Tensor) -> Tensor:
    """The numbers of the nearest by cosine, of every vector, [n, NEAREST]."""
    return table.topk(NEAREST, dim=1).indices


def neighbours_kept(before: Tensor, after: Tensor, unit: Tensor) -> Reading:
    """The mean share of a vector's nearest [n, k] that stay so; the interval is over vectors that ask."""
    n, k = before.shape
    share = (before[:, :, None] == after[:, None, :]).any(2).double().mean(1)
    total, count, units = _by_group(share[:, None], unit)
    found = left(total)[:, 0] / left(count)
    (low, high), moves = _interval(found, count, units), Groups.of(count.numpy()).moves(found)
    moved = Influence.of(*moves) if math.isfinite(low) else None
    return Reading(float(found[0]), n, k / (n - 1), max(low, 0.0), min(high, 1.0), influence=moved)


def moves_of_cosine(points: Tensor, unit: Tensor) -> Influence | None:
    """How much groups of units move the mean cosine between units: the same groups after a repair."""
    each, label = torch.unique(unit, return_inverse=True)
    of = Sums.of_directions(Vectors.see(points, label, mix(each))).left_out
    return Influence.of(*of.groups.moves(of.between)) if of.enough else None


def hubs(near: Tensor, unit: Tensor) -> tuple[Reading, Reading]:
    """Skewness of how often a vector is among the nearest [n, k] of others, and the share of none's."""
    n, k = near.shape
    times = torch.from_numpy(occurrences(near.numpy(), n)).double()
    parts = torch.stack([times, times**2, times**3, (times == 0).double()], dim=1)
    total, count, units = _by_group(parts, unit)
    first, second, third, nobody = (left(total) / left(count)[:, None]).T
    skew = skewness_of_moments(first, second, third)
    nulls, (low, high) = by_chance(k), _interval(nobody, count, units)
    skewed = Reading(float(skew[0]), n, nulls[0], *_interval(skew, count, units))
    return skewed, Reading(float(nobody[0]), n, nulls[1], max(low, 0.0), high)


def dimension_shares(points: Tensor, unit: Tensor, order: Tensor) -> tuple[list[Reading], list[Reading]]:
    """What share of the mean cosine each of the dimensions `order` [m] makes, and it with those before it.

    Dimension k adds (ΣS_k)² − ΣS_k² to the mean cosine between units, S the sum of û over a unit. Chance is a
    common direction that prefers no dimension, of which the largest are taken.
    """
    pointing = points.double() / points.double().norm(dim=1, keepdim=True)
    label = torch.unique(unit, return_inverse=True)[1]
    sums = torch.zeros(int(label.max()) + 1, pointing.shape[1], dtype=torch.float64)
    sums.index_add_(0, label, pointing)
    both = torch.cat([sums, sums**2], dim=1)
    total, count, units = _by_group(both, torch.arange(len(sums)))
    whole, squares = np.split(left(total), 2, axis=1)
    parts = whole**2 - squares  # [1 + G, d]
    with np.errstate(divide="ignore", invalid="ignore"):
        alone = parts[:, order.numpy()] / parts.sum(1, keepdims=True)
    width = pointing.shape[1]
    normal = np.random.default_rng([width, len(order)]).standard_normal((DRAWS, width)) ** 2
    drawn = np.sort(normal / normal.sum(1, keepdims=True), axis=1)[:, ::-1]
    chance = drawn[:, : len(order)].mean(0)  # the largest squares of a random direction, descending

    def told(found: Floats, null: float) -> Reading:
        return Reading(float(found[0]), len(points), null, *_interval(found, count, units))

    joined = np.cumsum(alone, axis=1)
    return (
        [told(alone[:, i], float(chance[i])) for i in range(len(order))],
        [told(joined[:, i], float(chance[: i + 1].sum())) for i in range(len(order))],
    )


def _by_group(values: Tensor, unit: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Sums of values [n, m] by group [G, m], how many vectors each group has and how many units, [G]."""
    group = unit_groups(unit)
    empty = torch.zeros(GROUPS, dtype=torch.float64)
    total = torch.zeros(GROUPS, values.shape[1], dtype=torch.float64).index_add(0, group, values)
    count = empty.index_add(0, group, torch.ones(len(group), dtype=torch.float64))
    each = torch.unique(unit)
    return total, count, empty.index_add(0, unit_groups(each), torch.ones(len(each), dtype=torch.float64))


def _interval(found: Any, count: Tensor, units: Tensor) -> tuple[float, float]:
    if not bool(have_enough(units)):
        return math.nan, math.nan
    low, high = Groups.of(count.numpy()).interval(found)
    return float(low), float(high)


EXPLAINED: dict[str, dict[str, str]] = {
    **{
        f"cosine_quantile_{per_cent:02}": {
            "family": "directions", "title": f"cosine that {per_cent} % of pairs lie below",
            "formula": f"the {per_cent} % quantile of cos(x, y) over pairs of different units",
            "says": "Where the cosines of two vectors lie: what a threshold must be chosen against.",
            "misleads": "It is of pairs drawn at random; the pairs that a task asks about are not.",
            "interval": "t interval over 8 to 16 disjoint groups of vectors",
        }
        for per_cent in QUANTILES
    },
    "neighbours_kept": {
        "family": "directions", "title": f"share of the {NEAREST} nearest neighbours kept",
        "formula": f"mean over x of |near(x) ∩ near(repaired x)| / {NEAREST}, nearest by cosine",
        "says": "How much of a ranking by cosine a repair leaves as it was. It tells that neighbours "
        "change, not whether for better or worse.", "misleads": "Among more vectors more neighbours change.",
        "null": f"{NEAREST}/(n−1)",
        "interval": "jackknife over the vectors that ask, among the same neighbours",
    },
    "hub_skewness": {
        "family": "directions", "title": "hubness: skewness of being a neighbour",
        "formula": f"E(N − k)³/σ³, N how often a vector is among the {NEAREST} nearest of another",
        "says": "High where a few vectors are near to nearly all.", "source": "Radovanović et al. 2010",
        "misleads": "It grows with the number of dimensions, also of an isotropic cloud.",
        "null": "1/√k: neighbours chosen by lot",
        "interval": "jackknife over groups of vectors, neighbours as they are",
    },
    "anti_hubs": {
        "family": "directions", "title": "share of vectors that are nobody's neighbour",
        "formula": f"share of vectors that are among the {NEAREST} nearest of none",
        "says": "How many vectors a search for neighbours never finds.",
        "misleads": "Among more vectors it is another.", "null": "e^(−k): neighbours chosen by lot",
        "interval": "jackknife over groups of vectors, neighbours as they are",
    },
    "dimension_share": {
        "family": "dimensions", "title": "share of the mean cosine that one dimension makes",
        "formula": "((Σû_k)² − Σû_k²) / Σ_k ((Σû_k)² − Σû_k²)", "says": "Whether the anisotropy is a matter "
        "of a few coordinates. The dimensions are chosen on one half of the vectors and read on the other.",
        "misleads": "It depends on the axes. Others may be negative, so a share may exceed 1.",
        "null": "the largest shares of a common direction that prefers no dimension",
        "interval": "jackknife over groups of vectors",
    },
    "dimension_share_joined": {
        "family": "dimensions", "title": "share of the mean cosine, with the dimensions before it",
        "formula": "Σ of the shares of this dimension and of those before it",
        "says": "What share a few dimensions make together.", "interval": "jackknife over groups of vectors",
    },
    "norm_variation": {
        "family": "drift", "title": "variation of the norms", "formula": "sd ‖x‖ / mean ‖x‖",
        "says": "0 where all vectors are as long: then the dot product ranks as the cosine does.",
    },
    "copies": {
        "family": "health", "title": "share of vectors that are copies",
        "formula": "1 − different vectors / vectors", "says": "Copies are each other's nearest neighbours.",
    },
    "constant_dimensions": {
        "family": "dimensions", "title": "constant dimensions", "formula": "#{k : sd x_k ≤ 1e-9·|mean x_k|}",
        "says": "Coordinates that tell nothing.",
    },
    "dimensions": {
        "family": "dimensions", "title": "dimensions", "formula": "d", "says": "The width.",
    },
    "left_out": {
        "family": "health", "title": "vectors with NaN or Inf", "formula": "#{x : some x_k is NaN or Inf}",
        "says": "How many of those that were looked at could not be used.",
    },
    "no_direction": {
        "family": "health", "title": "vectors of norm zero", "formula": "#{x : ‖x‖ = 0}",
        "says": "They have no cosine, and are left out.",
    },
}  # fmt: skip
