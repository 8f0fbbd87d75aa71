"""How alike two layers see the same positions."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from isoscope.geometry import alignment
from isoscope.measures.base import Measure, undefined
from isoscope.results.reading import Reading
from isoscope.stats.reservoir import Reservoir

LEAST = 4  # positions


def _cka(record: Reservoir, other: Reservoir) -> Reading:
    mine, its = _products(record, other)
    size = math.sqrt(float((mine**2).sum() * (its**2).sum()))
    if len(mine) < LEAST:
        return undefined(len(mine), f"needs {LEAST} positions that both layers have")
    if size == 0:
        return undefined(len(mine), "all vectors of a layer are the same")
    return Reading(float((mine * its).sum()) / size, len(mine), null=0.0)


def _products(record: Reservoir, other: Reservoir) -> tuple[Tensor, Tensor]:
    """The centred products of the places that both have, in one order."""
    if torch.equal(record.place, other.place):
        return _centred(record), _centred(other)
    one, two = record.place.cpu().numpy(), other.place.cpu().numpy()
    _, mine, its = np.intersect1d(one, two, return_indices=True)
    return _u_centred(record.points[mine]), _u_centred(other.points[its])


@lru_cache(maxsize=3)
def _centred(record: Reservoir) -> Tensor:
    """A layer is held against the one before and the first: its products are formed once."""
    return _u_centred(record.points)


def _u_centred(points: Tensor) -> Tensor:
    points = points.double()
    return alignment.u_centred(points) if len(points) >= LEAST else points.new_zeros(len(points), 0)


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
