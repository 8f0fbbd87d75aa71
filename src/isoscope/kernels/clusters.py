"""The mean cosine inside centred clusters, on the device that holds the vectors.

K-means begins at the points that scikit-learn draws and iterates as scikit-learn does (Lloyd's algorithm, the
same tolerance), so that the clusters are the same. The sum of the cosines of a cluster is ‖Σû‖², without a
matrix of pairs.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from isoscope.geometry import clusters as naive

_MOST = 300  # iterations; both numbers are scikit-learn's
_TOLERANCE = 1e-4  # of the mean variance of a dimension: centres that move less have converged


def cluster_cosine(points: Tensor) -> float:
    """The mean cosine over pairs of one cluster, each cluster centred. Twin: `geometry.clusters`."""
    if len(points) < naive.LEAST or bool((points == points[0]).all()):
        return math.nan
    label, points = clusters(points), points.double()
    least = naive.SAME * float(((points - points.mean(0)) ** 2).sum(1).mean().sqrt())
    centred = points - _means(points, label)[label]
    norm = centred.norm(dim=1)
    away = norm > least
    unit = torch.where(away[:, None], centred / norm[:, None], 0)
    count = torch.bincount(label[away], minlength=naive.CLUSTERS).double()
    total = unit.new_zeros(naive.CLUSTERS, unit.shape[1]).index_add_(0, label, unit)
    pairs = float((count * (count - 1)).sum())
    return float((total**2).sum() - count.sum()) / pairs if pairs else math.nan


def clusters(points: Tensor) -> Tensor:
    """The number of the cluster of every vector, [n]. Twin: `geometry.clusters.clusters`."""
    from sklearn.cluster import kmeans_plusplus  # takes a second to import

    centred = points.double() - points.double().mean(0)
    rounded = (centred / (centred**2).sum(1).mean().sqrt()).round(decimals=4)
    limit = _TOLERANCE * float(rounded.var(0, correction=0).mean())
    rounded = rounded - rounded.mean(0)
    drawn, _ = kmeans_plusplus(rounded.cpu().numpy(), naive.CLUSTERS, random_state=0)
    centres, label = torch.from_numpy(drawn).to(rounded), None
    for _ in range(_MOST):
        new = _nearest(rounded, centres)
        if int(torch.bincount(new, minlength=naive.CLUSTERS).min()) == 0:  # scikit-learn moves empty clusters
            return naive.clusters(points.cpu()).to(points.device)
        if label is not None and torch.equal(new, label):
            return new
        moved, label = _means(rounded, new), new
        shift, centres = float(((moved - centres) ** 2).sum()), moved
        if shift <= limit:
            break
    return _nearest(rounded, centres)


def _nearest(points: Tensor, centres: Tensor) -> Tensor:
    return ((centres**2).sum(1) - 2 * points @ centres.T).argmin(1)


def _means(points: Tensor, label: Tensor) -> Tensor:
    """The mean of every cluster, [k, d]."""
    count = torch.bincount(label, minlength=naive.CLUSTERS).clamp_min(1).to(points)
    sums = points.new_zeros(naive.CLUSTERS, points.shape[1]).index_add_(0, label, points)
    return sums / count[:, None]
