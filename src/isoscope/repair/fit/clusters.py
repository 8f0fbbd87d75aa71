"""Cluster-wise all-but-the-top (Rajaee & Pilehvar 2021): k-means on a sample, then moments by cluster."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from isoscope.errors import IsoscopeError
from isoscope.geometry.clusters import CLUSTERS
from isoscope.repair.fit.fits import Spectrum, are_same, default_top
from isoscope.repair.fit.gather import moments_of
from isoscope.repair.fit.kinds import Asked
from isoscope.repair.fit.sample import Sample
from isoscope.repair.keep.maps import Clustered, cast
from isoscope.stats.moments import Moments

LEAST = 4  # vectors a cluster


@dataclass(frozen=True)
class ByCluster:
    """The moments of every cluster, those without a vector among them."""

    moments: tuple[Moments, ...]

    @classmethod
    def of(cls, points: Tensor, nearest: Clustered) -> Self:
        """Fold one batch."""
        label, d = cast(nearest, points).nearest(points), points.shape[1]
        parts = (points[label == name] for name in range(len(nearest.centres)))
        nothing = Moments(*(torch.zeros(size, dtype=torch.float64) for size in ([1], [1, d], [1, d, d])))
        return cls(tuple(moments_of(part) if len(part) else nothing for part in parts))

    def merge(self, other: Self) -> Self:
        """The record of both streams."""
        return type(self)(tuple(one.merge(two) for one, two in zip(self.moments, other.moments, strict=True)))


def find_clusters(sample: Sample, asked: Asked) -> Clustered:
    """The clusters of a sample, with nothing yet to take away in them.

    k-means begins at k-means++ points of a fixed seed, on vectors rounded so that rounding breaks no ties.
    """
    from sklearn.cluster import KMeans  # takes a second to import
    from sklearn.exceptions import ConvergenceWarning

    many, points = asked.number(0, CLUSTERS), sample.points.double()
    if len(points) < LEAST * many:
        raise IsoscopeError(
            f"'{asked}' finds {many} clusters in at least {LEAST * many} vectors; got {len(points)}."
        )
    origin = points.mean(0)
    centred = points - origin
    size = (centred**2).sum(1).mean().sqrt()
    if float(size) == 0:
        raise IsoscopeError(f"all {len(points)} vectors are the same; there is no spread to repair.")
    rounded = (centred / size).round(decimals=4)
    with warnings.catch_warnings():  # of copies there may be fewer clusters than asked: their number is told
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = KMeans(many, n_init=1, random_state=0).fit_predict(rounded.numpy())
    label = torch.from_numpy(found).long()
    centres = torch.stack([centred[label == name].mean(0) for name in torch.unique(label)])
    nothing = torch.zeros(len(centres), 0, points.shape[1], dtype=torch.float64)
    return Clustered(origin, centres, origin + centres, nothing)


def all_but_the_tops(found: Clustered, record: ByCluster, asked: Asked) -> tuple[Clustered, str]:
    """The same clusters with each one's mean and its D widest directions to take away. And a note."""
    width = len(found.origin)
    many, tops, means, bare = asked.number(1, default_top(width)), [], [], 0
    if many >= width:
        raise IsoscopeError(f"'{asked}' would leave none of {width} dimensions; ask for fewer directions.")
    for moments, centre in zip(record.moments, found.means, strict=True):
        top = torch.zeros(many, width, dtype=torch.float64)
        spread = (moments.n, moments.mean[0], moments.scatter[0].diagonal())
        if moments.n > many + 1 and not are_same(*spread):  # else nothing of the cluster would be left
            found_there = Spectrum.of(moments)
            top = torch.where(found_there.values[:many, None] > 0, found_there.vectors[:many], 0.0)
        else:
            bare += 1
        tops.append(top)
        means.append(moments.mean[0] if moments.n else centre)
    note = f"cluster-abtt: {bare} of {len(tops)} clusters have too few different vectors and are only centred"
    return Clustered(found.origin, found.centres, torch.stack(means), torch.stack(tops)), note if bare else ""
