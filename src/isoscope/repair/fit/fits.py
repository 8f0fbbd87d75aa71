"""From a record to a map: what is subtracted, which directions go, how much each is stretched.

Variances are over n − 1. Eigenvectors are turned so that their largest coordinate is positive.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from isoscope.errors import IsoscopeError
from isoscope.repair.fit.kinds import Asked
from isoscope.repair.keep.maps import Projected, Scaled, Turned
from isoscope.stats.dimensions import Dimensions
from isoscope.stats.directions import Contributions
from isoscope.stats.moments import Moments

SAME = 1e-9  # of the mean's length: vectors that spread less are the same but for rounding
ONE_WAY = 1e-13  # under 1: a mean cosine that rounding alone keeps from 1
PER_HUNDRED = 100  # dimensions to one direction that all-but-the-top takes (Mu & Viswanath 2018)
ROGUE = 3  # dimensions (Timkey & van Schijndel 2021 tell the first three)
FEW = 10  # vectors a dimension, under which narrow variances are read too small


@dataclass(frozen=True)
class Spread:
    """How many vectors, their mean and the variance of every dimension, [d]."""

    n: int
    mean: Tensor
    variance: Tensor

    @classmethod
    def of(cls, record: Moments | Dimensions) -> Spread:
        """Read off either record; vectors that are all the same are refused."""
        if isinstance(record, Moments):
            n, mean, scatter = record.n, record.mean[0], record.scatter[0].diagonal()
        else:
            n, mean, scatter = int(record.count), record.mean.cpu(), record.scatter.cpu()
        if are_same(n, mean, scatter):
            raise IsoscopeError(f"all {n} vectors are the same; there is no spread to repair.")
        return cls(n, mean, scatter / (n - 1))


def are_same(n: int, mean: Tensor, scatter: Tensor) -> bool:
    """Whether n vectors, of this mean and Σ(x − x̄)² of every dimension, do not spread but for rounding."""
    return float((scatter.sum() / n).sqrt()) <= SAME * float(mean.norm())


@dataclass(frozen=True, eq=False)
class Spectrum:
    """How many vectors, their mean, and their covariance by its directions.

    `values` [d] are the variances, descending, 0 for rounding; `vectors` [d, d] has a direction a row.
    """

    n: int
    mean: Tensor
    values: Tensor
    vectors: Tensor

    @classmethod
    def of(cls, moments: Moments, rounding: Tensor | None = None) -> Spectrum:
        """Read off a record; `rounding` [d, d] is a covariance that rounding alone may have made."""
        Spread.of(moments)
        values, vectors = torch.linalg.eigh(moments.scatter[0] / (moments.n - 1))
        values, vectors = values.flip(0), vectors.T.flip(0)
        least = len(values) * torch.finfo(values.dtype).eps * values[0]
        if rounding is not None:
            least = torch.maximum(least, ((vectors @ rounding) * vectors).sum(1))
        signs = vectors.gather(1, vectors.abs().argmax(1, keepdim=True)).sign()
        return cls(moments.n, moments.mean[0], torch.where(values > least, values, 0), vectors * signs)

    @property
    def rank(self) -> int:
        """How many directions have a spread."""
        return int((self.values > 0).sum())


def standardise(spread: Spread) -> tuple[Scaled, str]:
    """(x − x̄)/σ, dimension by dimension; one that is constant is only centred. And a note."""
    constant = spread.variance.sqrt() <= torch.maximum(SAME * spread.mean.abs(), spread.mean.new_tensor(0))
    scale = torch.where(constant, 1.0, spread.variance.rsqrt())
    many = int(constant.sum())
    note = f"standardise: {many} of {len(scale)} dimensions are constant and only centred" if many else ""
    return Scaled(spread.mean, scale), note


def rogue(record: Contributions, asked: Asked) -> Scaled:
    """Set to 0, not drop, the dimensions that add most to the mean cosine, ((Σû_i)² − Σû_i²)/(n(n−1))."""
    share = record.contributions().cpu()
    many = asked.number(0, max(1, min(ROGUE, len(share) - 1)))
    if many >= len(share):
        raise IsoscopeError(f"'{asked}' would leave none of {len(share)} dimensions; ask for fewer.")
    if float(share.sum()) >= 1 - ONE_WAY or not bool((record.squares > 0).any()):
        raise IsoscopeError("all vectors point the same way, or nowhere; there is no spread to repair.")
    kept = torch.ones_like(share)
    kept[share.topk(many).indices] = 0
    return Scaled(torch.zeros_like(share), kept)


def default_top(width: int) -> int:
    """D ≈ d/100, at least 1."""
    return max(1, round(width / PER_HUNDRED))


def all_but_the_top(found: Spectrum, asked: Asked) -> Projected:
    """Take away the mean and the D widest directions *of the centred vector*."""
    width, rank = len(found.values), found.rank
    many = asked.number(0, default_top(width))
    if many >= rank:
        raise IsoscopeError(
            f"'{asked}' would leave nothing: {found.n} vectors of {width} dimensions spread along {rank} "
            f"directions; ask for fewer than {rank}."
        )
    return Projected(found.mean, found.vectors[:many])


def whiten(found: Spectrum, asked: Asked) -> tuple[Turned, str]:
    """The k widest directions, each divided by its standard deviation: covariance I, mean 0. And a note.

    Without a number k is the rank. Of no more vectors than dimensions the covariance is shrunk (`shrinkage`).
    """
    n, values, width, rank = found.n, found.values, len(found.values), found.rank
    notes = []
    if asked.number(0, 1) > width:
        raise IsoscopeError(f"'{asked}' asks for more dimensions than the {width} that vectors have.")
    if n <= width:
        share = shrinkage(values, n)
        values, rank = (1 - share) * values + share * values.mean(), width
        notes.append(
            f"whiten: {n} vectors of {width} dimensions are too few; the covariance is shrunk by {share:.2f} "
            "towards a round one"
        )
    elif n < FEW * width < 2 * FEW * asked.number(0, rank):  # of the wider half none is among them
        least = (1 - (width / n) ** 0.5) ** 2
        notes.append(
            f"whiten: {n} vectors of {width} dimensions are few; the narrowest variances may be read "
            f"as little as {least:.2f} of what they are"
        )
    many = asked.number(0, rank)
    if many > rank:
        raise IsoscopeError(
            f"'{asked}' cannot be had: the vectors spread along {rank} of {width} dimensions only; "
            f"ask for whiten:{rank} or fewer."
        )
    if rank < width and not asked.given:
        notes.append(f"whiten: {rank} of {width} directions have a spread, and those are kept")
    return Turned(found.mean, found.vectors[:many] * values[:many].rsqrt()[:, None]), "; ".join(notes)


def shrinkage(values: Tensor, n: int) -> float:
    """How far to shrink a covariance of these eigenvalues [d] towards the round one, in [0, 1].

    Oracle approximating shrinkage (Chen et al. 2010) as in scikit-learn, which needs no fourth moments: (mean
    Σ_ij² + μ²)/((n+1)(mean Σ_ij² − μ²/d)), μ = tr Σ/d.
    """
    width = len(values)
    squares, mean = float((values**2).sum()) / width**2, float(values.mean())
    below = (n + 1) * (squares - mean**2 / width)
    return 1.0 if below <= 0 else min(1.0, (squares + mean**2) / below)
