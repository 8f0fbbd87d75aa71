"""How alike two layers see the same positions."""

from __future__ import annotations

import math
from functools import cached_property, lru_cache

import numpy as np
import torch
from torch import Tensor

from isoscope.geometry import alignment
from isoscope.kernels.alignment import u_product
from isoscope.measures.base import Measure, undefined
from isoscope.results.reading import Reading
from isoscope.stats.reservoir import Reservoir

LEAST = 4  # positions


def _cka(record: Reservoir, other: Reservoir) -> Reading:
    mine, its = _shared(record, other)
    n = len(mine.points)
    if n < LEAST:
        return undefined(n, f"needs {LEAST} positions that both layers have")
    if mine.with_itself > 0 and its.with_itself > 0:
        value = float(u_product(mine.points, its.points)) / math.sqrt(mine.with_itself * its.with_itself)
    else:
        value = alignment.cka(mine.as_they_lie, its.as_they_lie)
    if math.isnan(value):
        return undefined(n, "all vectors of a layer are the same")
    return Reading(value, n, null=0.0)


class _Centred:
    """The vectors of a layer in float64, as they lie and centred, and ⟨K, K⟩ of them."""

    def __init__(self, points: Tensor) -> None:
        self.as_they_lie = points.double()
        self.points = self.as_they_lie - self.as_they_lie.mean(0) if len(points) else self.as_they_lie

    @cached_property
    def with_itself(self) -> float:
        """⟨K, K⟩; 0 where rounding may be all of it, as of vectors that are the same or equally far apart."""
        product, squares = u_product(self.points, self.points), (self.points**2).sum() ** 2
        return float(torch.where(product > 1e-9 * squares, product, 0))


def _shared(record: Reservoir, other: Reservoir) -> tuple[_Centred, _Centred]:
    """The vectors of the places that both have, in one order."""
    if torch.equal(record.place, other.place):
        return _centred(record), _centred(other)
    one, two = record.place.cpu().numpy(), other.place.cpu().numpy()
    _, mine, its = np.intersect1d(one, two, return_indices=True)
    return _Centred(record.points[mine]), _Centred(other.points[its])


@lru_cache(maxsize=3)
def _centred(record: Reservoir) -> _Centred:
    """A layer is compared with the one before and with the first: it is centred once."""
    return _Centred(record.points)


def _measure(against: str) -> Measure:
    return Measure(
        name=f"cka_{against}",
        family="layers",
        stats=(Reservoir,),
        read=_cka,
        definition=alignment.cka,
        title=f"CKA with the {against} layer",
        formula="⟨K, L⟩/√(⟨K, K⟩⟨L, L⟩), K and L the U-centred XXᵀ and YYᵀ of the same positions",
        says=f"How alike this layer and the {against} one arrange the same positions: 1 when they differ "
        "by a rotation, a scale and a shift, 0 when they have nothing to do with each other.",
        misleads="A few dominant dimensions decide it: two layers that share a rogue dimension agree.",
        null="0: the bias of the plain form is taken away",
        interval="none: a ratio over one sample",
        source="Kornblith et al. 2019; Murphy, Zylberberg & Fyshe 2024",
        bounds=(-1.0, 1.0),
        unchanged_by=frozenset({"rotation", "scale", "shift"}),
        needs=frozenset({"layers"}),
        against=against,
    )


MEASURES = (_measure("previous"), _measure("first"))
