"""How many dimensions a cloud uses: readings of the eigenvalues λ of its centred covariance.

Two of them, RankMe and the stable rank, read the singular values of the cloud as it lies, mean
included; each function says which. The undefined (fewer than two vectors, no spread) is NaN.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

SHRINKAGE = 0.2
"""ζ of IsoScore* (Rudman & Eickhoff 2024)."""
FIRST_RANK, LAST_RANK = 4, 100
"""The ranks to which the spectral exponent is fitted: those of the code of Agrawal et al. (2022)."""
LEAST_SHARE = 1e-10
"""Eigenvalues up to this share of λ₁ are left out of the fit: rounding moves their logarithm by 1e-6."""


def eigenvalues(points: Tensor) -> Tensor:
    """λ of the covariance of `points` [n, d], centred, over n−1; ascending, [d]; NaN for fewer than two."""
    sigma = covariance(points)
    return torch.linalg.eigvalsh(sigma) if len(points) > 1 else sigma[0]


def centred(points: Tensor) -> Tensor:
    """X − x̄, [n, d]; measured from the first vector, so that equal vectors give zero and not rounding."""
    apart = points.double() - points[:1].double()
    return apart - apart.mean(0)


def covariance(points: Tensor) -> Tensor:
    """Σ = Σ(x−x̄)(x−x̄)ᵀ/(n−1), [d, d]; NaN for fewer than two vectors."""
    if len(points) < 2:
        return torch.full((points.shape[1],) * 2, math.nan, dtype=torch.float64)
    apart = centred(points)
    return apart.T @ apart / (len(points) - 1)


def participation_ratio(points: Tensor) -> float:
    """PR = (Σλ)²/Σλ², in [1, d]: the number of dimensions that carry the variance."""
    spread = eigenvalues(points)
    return float(spread.sum() ** 2 / (spread**2).sum())


def participation_ratio_split(points: Tensor, half: Tensor) -> float:
    """Tr S₁·tr S₂ / tr(S₁S₂), S₁ and S₂ the covariances of two halves (`half` is 0 or 1 for each vector).

    Almost free of PR's bias at small n, because the noise of one half is independent of the other's.
    NaN where the halves share no direction.
    """
    first, second = covariance(points[half == 0]), covariance(points[half == 1])
    overlap = float((first * second).sum())
    return float(first.trace() * second.trace()) / overlap if overlap > 0 else math.nan


def isoscore(points: Tensor) -> float:
    """IsoScore = (PR−1)/(d−1), in [0, 1]: 1 when the variance is the same in every direction."""
    width = points.shape[1]
    return (participation_ratio(points) - 1) / (width - 1) if width > 1 else math.nan


def exp_entropy(weights: Tensor) -> float:
    """exp(−Σ p log p) with p = weights/Σweights: how many of them count."""
    share = weights.double().clamp_min(0) / weights.clamp_min(0).sum()
    return float(torch.special.entr(share).sum().exp())


def effective_rank(points: Tensor) -> float:
    """exp(H(σ/Σσ)), σ the singular values of the centred cloud, in [1, d] (Roy & Vetterli 2007)."""
    return exp_entropy(torch.linalg.svdvals(centred(points))) if len(points) > 1 else math.nan


def rankme(points: Tensor) -> float:
    """exp(H(σ/Σσ)), σ the singular values of the cloud as it lies, in [1, d] (Garrido et al. 2023)."""
    return exp_entropy(torch.linalg.svdvals(points.double()))


def singular_entropy(points: Tensor) -> float:
    """KL(σ/Σσ ‖ uniform) of the singular values of the cloud as it lies, in [0, log d]; 0 when all alike."""
    values = torch.linalg.svdvals(points.double())
    share = values / values.sum()
    return math.log(len(values)) - float(torch.special.entr(share).sum())


def stable_rank(points: Tensor) -> float:
    """‖X‖_F²/‖X‖₂² of the cloud as it lies, in [1, d]."""
    squares = torch.linalg.svdvals(points.double()) ** 2
    return float(squares.sum() / squares.max())


def top_share(points: Tensor) -> float:
    """λ_max/Σλ, in [1/d, 1]: the share of the variance along one single direction."""
    spread = eigenvalues(points)
    return float(spread.max() / spread.sum())


def isoscore_star(points: Tensor) -> float:
    """IsoScore of the covariance shrunk by ζ = .2 towards the round one of the same trace, in [0, 1]."""
    points = points.double()
    width = points.shape[1]
    if len(points) < 2 or width < 2:
        return math.nan
    spread = covariance(points)
    shrunk = (1 - SHRINKAGE) * spread + SHRINKAGE * spread.trace() / width * torch.eye(width).double()
    values = torch.linalg.eigvalsh(shrunk)
    return float((values.sum() ** 2 / (values**2).sum() - 1) / (width - 1))


def spectral_exponent(points: Tensor) -> float:
    """α of λ_k ∝ k^−α, at least 0: minus the slope of log λ_k on log k, k from 4 to 100, each weighing 1/k.

    Eigenvalues that are rounding are left out. NaN for fewer than two eigenvalues in that range.

    >>> cross = torch.cat([torch.eye(8), -torch.eye(8)]) * torch.arange(1, 9) ** -0.5
    >>> round(spectral_exponent(cross), 6)
    1.0
    """
    values = eigenvalues(points).flip(0)
    rank = torch.arange(1, len(values) + 1)
    used = (rank >= FIRST_RANK) & (rank <= LAST_RANK) & (values > LEAST_SHARE * values[0])
    if used.sum() < 2:
        return math.nan
    root = rank[used].double().rsqrt()[:, None]
    line = torch.stack([torch.ones(len(root)), rank[used].double().log()], 1)
    return -float(torch.linalg.lstsq(root * line, root * values[used].log()[:, None]).solution[1])
