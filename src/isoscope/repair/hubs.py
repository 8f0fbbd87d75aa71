"""Hubs are among the nearest neighbours of many other vectors, anti-hubs are nobody's neighbour.

N_k(x) counts the vectors that have x among their k nearest by cosine. If neighbours were chosen by chance,
N_k would be nearly Poisson: skewness 1/√k, and a share e^{−k} of anti-hubs.

Advice and impact share these definitions and differ in which pairs count, which the `near` they pass decides.
Advice never takes a neighbour from the vector's own unit; impact leaves out the vector itself only.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

NEAREST = 10  # neighbours of a vector that count, as Radovanović et al. 2010 have it
Array = np.ndarray[Any, Any]


def occurrences(near: Array, n: int) -> Array:
    """How often each of n vectors stands in the lists `near` of nearest neighbours [m, k], [n]."""
    return np.bincount(near.ravel(), minlength=n)


def hub_skewness(counts: Array) -> Array:
    """E(N − N̄)³/σ³ of occurrences [..., n], [...]; 0 where nothing varies: there are no hubs."""
    centred = counts - counts.mean(-1, keepdims=True)
    spread = np.sqrt((centred**2).mean(-1))
    return np.where(spread > 0, (centred**3).mean(-1) / np.where(spread > 0, spread, 1) ** 3, 0.0)


def skewness_of_moments(first: Array, second: Array, third: Array) -> Array:
    """`hub_skewness` from the means of N, N² and N³, which a jackknife has without the counts."""
    variance, cubes = second - first**2, third - 3 * first * second + 2 * first**3
    varies = variance > 0
    return np.where(varies, cubes / np.where(varies, variance, 1) ** 1.5, 0.0)


def anti_hubs(counts: Array) -> Array:
    """The share of vectors that are nobody's neighbour, of occurrences [..., n], [...]."""
    return (counts == 0).mean(-1)


def by_chance(k: int) -> tuple[float, float]:
    """The skewness and the share of anti-hubs where neighbours are chosen by chance."""
    return 1 / math.sqrt(k), math.exp(-k)
