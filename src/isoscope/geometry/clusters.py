"""Anisotropy inside clusters: what is left of it when every cluster's own mean is taken away."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from isoscope.geometry.cosine import directions

CLUSTERS = 8
LEAST = 4 * CLUSTERS  # vectors
SAME = 1e-4  # of the cloud's size: a vector this close to its cluster's mean has no direction from there


def cluster_cosine(points: Tensor) -> float:
    """The mean cosine over pairs of one cluster, each cluster centred, in [−1, 1] (Cai et al. 2021).

    Clusters are those of k-means, k = 8, begun at k-means++ points of a fixed seed.
    """
    if len(points) < LEAST or bool((points == points[0]).all()):
        return math.nan
    label, points = clusters(points), points.double()
    least = SAME * float(((points - points.mean(0)) ** 2).sum(1).mean().sqrt())
    total, pairs = 0.0, 0
    for name in torch.unique(label):
        mine = points[label == name] - points[label == name].mean(0)
        unit = directions(mine[mine.norm(dim=1) > least])
        if len(unit) > 1:
            total += float((unit @ unit.T).sum()) - len(unit)
            pairs += len(unit) * (len(unit) - 1)
    return total / pairs if pairs else math.nan


def clusters(points: Tensor) -> Tensor:
    """The number of the cluster of every vector, [n].

    Found on vectors rounded to 1e-4 of the cloud's size: the same token gives the same vector but for
    rounding, and k-means would break such ties now this way, now that.
    """
    from sklearn.cluster import KMeans  # takes a second to import

    centred = points.double() - points.double().mean(0)
    rounded = (centred / (centred**2).sum(1).mean().sqrt()).round(decimals=4)
    return torch.from_numpy(KMeans(CLUSTERS, n_init=1, random_state=0).fit_predict(rounded.numpy())).long()
