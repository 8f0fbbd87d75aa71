"""Readings of directions: how alike they are, and which dimension makes them so."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
from scipy import special

from isoscope.geometry import cosine
from isoscope.measures.base import Measure, side_by_side, undefined
from isoscope.results.reading import Influence, Reading
from isoscope.stats.directions import Contributions, Directions
from isoscope.stats.orientation import Orientation
from isoscope.stats.sums import Sums

_GODEY = "Ethayarajh 2019; Godey, de la Clergerie & Sagot 2024, arXiv 2401.12143"


def _zeros(record: Directions) -> str:
    return f"{int(record.zeros)} of norm zero left out" if record.zeros else ""


def _mean_cosine(record: Directions) -> Reading:
    if record.sums.n < 2:
        return undefined(record.sums.n, "needs 2 vectors that are not zero")
    return Reading(float(record.sums.left_out.all_pairs), record.sums.n, null=0.0, note=_zeros(record))


def read_mean_cosine_between(record: Directions) -> Reading:
    """The mean cosine over pairs from different sequences, with its interval."""
    found = mean_cosines_between(record.sums)[0]
    return found if found.note else replace(found, note=_zeros(record))


def mean_cosines_between(sums: Sums) -> tuple[Reading, ...]:
    """The same of each of the clouds side by side."""
    of = sums.left_out
    value = of.between[0]
    low, high = of.groups.interval_of_square(of.between, of.along)
    return side_by_side(
        value,
        of.n,
        null=np.zeros_like(value),
        low=np.where(of.enough, np.maximum(low, -1.0), math.nan),
        high=np.where(of.enough, np.minimum(high, 1.0), math.nan),
        notes=[
            "needs 2 sequences" if math.isnan(each) else "" if enough else of.few
            for each, enough in zip(np.ravel(value), np.ravel(of.enough), strict=True)
        ],
        influence=Influence.of(*of.groups.moves(of.between)) if value.ndim == 0 and of.enough else None,
    )


def _cosine_variance(record: Orientation) -> Reading:
    n = float(record.count)
    if n < 2:
        return undefined(int(n), "needs 2 vectors that are not zero")
    pairs = n * (n - 1)
    mean = float(record.total @ record.total - n) / pairs
    value = float((record.products**2).sum() - n) / pairs - mean**2
    return Reading(max(value, 0.0), int(n), null=(1 - 2 / pairs) / len(record.total))


def _rogue_contribution(record: Contributions) -> Reading:
    if record.sums.n < 2:
        return undefined(record.sums.n, "needs 2 vectors that are not zero")
    parts = record.contributions()
    largest = int(parts.argmax())
    width, n = len(parts), record.sums.n
    null = (n * float(record.sums.left_out.noise) * expected_largest(width) - 1) / ((n - 1) * width)
    return Reading(float(parts[largest]), n, min(null, 1.0), note=f"dimension {largest}")


@lru_cache(maxsize=256)
def expected_largest(width: int) -> float:
    """The mean of the largest of `width` squares of standard normal numbers: ∫ 2y·P(some |y_k| > y) dy."""
    nodes, weights = np.polynomial.legendre.leggauss(128)
    y = 5 * (nodes + 1)  # from 0 to 10
    return float(5 * weights @ (2 * y * (1 - special.erf(y / math.sqrt(2)) ** width)))


_measure = partial(
    Measure,
    family="directions",
    stats=(Directions,),
    bounds=(-1.0, 1.0),
    unchanged_by=frozenset({"rotation", "scale"}),
)

MEASURES = (
    _measure(
        name="mean_cosine",
        read=_mean_cosine,
        definition=cosine.mean_cosine,
        title="mean cosine, all pairs",
        formula="A = (‖Σû‖² − n) / (n(n−1)),  û = x/‖x‖",
        says="How alike any two vectors point: 0 in an isotropic cloud, near 1 when all crowd into a cone. "
        "Exact over all pairs; none is sampled.",
        misleads="Vectors of one sequence are alike, so with few sequences it reads too high. It measures "
        "directions only, and one dominant dimension can make all of it.",
        null="0",
        interval="none: pairs inside a sequence bias it; see mean_cosine_between",
        source=_GODEY,
    ),
    _measure(
        name="mean_cosine_between",
        read=read_mean_cosine_between,
        definition=cosine.mean_cosine_between,
        title="mean cosine between sequences",
        formula="(‖ΣS_s‖² − Σ‖S_s‖²) / (n² − Σn_s²),  S_s = Σû over sequence s",
        says="How alike vectors from different sequences point, or from different documents where "
        "sequences are cut from documents: the anisotropy of the space itself, without what these share "
        "inside.",
        misleads="Like every mean over pairs it hides clusters: two opposite cones average to 0. Its "
        "interval takes documents for independent. Of one long text it takes blocks of chunks, and another "
        "part of the text may lie outside it.",
        null="0",
        interval="jackknife over groups of whole documents, from 8 on",
        source="isoscope; the unbiased form of A",
    ),
    _measure(
        name="cosine_variance",
        stats=(Orientation,),
        read=_cosine_variance,
        definition=cosine.cosine_variance,
        title="variance of the cosines",
        formula="(‖Σûûᵀ‖_F² − n) / (n(n−1)) − A²",
        says="Whether the cosines are all about the same or differ from pair to pair. 1/d when isotropic.",
        misleads="Both a cone (all cosines high) and an isotropic cloud (all near 0) have little of it.",
        null="(1 − 2/(n(n−1)))/d",
        interval="none: the record keeps no groups",
        source="isoscope",
        bounds=(0.0, 1.0),
        extra=True,
    ),
    _measure(
        name="rogue_contribution",
        stats=(Contributions,),
        read=_rogue_contribution,
        definition=cosine.rogue_contribution,
        title="largest contribution of one dimension",
        formula="max_k ((Σû_k)² − Σû_k²) / (n(n−1))",
        says="How much of the mean cosine comes from one coordinate, and which. When it is most of A, "
        "the anisotropy is a matter of that dimension.",
        misleads="It depends on the axes: rotate the cloud and it is gone while A stays.",
        null="the expected largest of d chance contributions, at the effective number of vectors",
        interval="none: a maximum",
        source="Timkey & van Schijndel 2021",
        unchanged_by=frozenset({"scale"}),
    ),
)
