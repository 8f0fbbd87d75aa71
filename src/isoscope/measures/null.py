"""Nulls: what a reading is for an isotropic Gaussian cloud of the same n, d and dependence.

The eigenvalues of XᵀX of independent vectors are drawn exactly, from the bidiagonal model of Dumitriu &
Edelman (2002): O(d) random numbers and a tridiagonal eigenproblem, whatever n is. What needs the
vectors themselves is read off whole clouds, a few where they are large: those vary little.

Vectors of one sequence are alike, and so an isotropic population looks less isotropic than n independent
vectors do. `Dependence` measures how alike they are. XᵀX of such vectors is a sum of two independent
Wishart matrices, of the differences between sequences and of those inside them. The participation ratio
needs the first two moments of that sum only. Other readings of the spectrum are those of independent
vectors times the ratio of two limits (n and d large at the same n/d): with the dependence over without.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from scipy.linalg import eigvalsh_tridiagonal
from torch import Tensor

from isoscope.stats.intervals import Array, array
from isoscope.stats.moments import Moments
from isoscope.stats.sums import Sums

POINTS = 2000  # at which the density of a spectrum is worked out
LEAST = 1e-4  # of the variance: less than this inside blocks is none


@dataclass(frozen=True)
class Dependence:
    """How much the vectors of a cloud depend on each other, as blocks of equal length that are alike inside.

    All pairs inside a block have one correlation, and blocks are independent. A block is a sequence, or
    part of one where vectors that are close to each other are the more alike.
    """

    pairs: float = 0.0  # share of all pairs that lie inside a block
    alike: float = 0.0  # ρ, the mean of x_i·x_j over those pairs over that of ‖x‖², about the mean; 0 to 1

    @classmethod
    def of(cls, sums: Sums) -> Dependence:
        """Read it off sums by sequence; none where vectors stand alone, or all in one sequence.

        Blocks have the Σ_s n_s² of the sequences. All three means are taken about x̄, which lowers each by as
        much as it does that over pairs from different sequences: without these the estimate would be biased
        where sequences are few.
        """
        n, square, size = (float(part.sum()) for part in (sums.count, sums.count_squared, sums.squared))
        mean = array(sums.total).sum(0) / max(n, 1)
        length = float(mean @ mean)
        apart = size - n * length  # Σ‖x − x̄‖²
        if square <= n or square >= n * n or apart <= 1e-12 * size:
            return cls()
        across = 2 * float(mean @ array(sums.counted_total))
        of_sequences = max(float(sums.total_squared.sum()) - across + length * square, 0)  # Σ‖X_s − n_s·x̄‖²
        between = -of_sequences / (n * n - square)
        alike = ((of_sequences - apart) / (square - n) - between) / (apart / n - between)
        return cls((square - n) / (n * n - n), min(max(alike, 0.0), 1.0))

    @classmethod
    def of_spread(cls, sums: Sums, spread: Moments) -> Dependence:
        """Shorten the blocks to the noise of the covariance that its two halves show.

        With ρ_ij the correlations of a vector with the others of its sequence, sums show Σρ and the noise
        shows Σρ². Blocks of one length and one ρ that have both: ρ = Σρ²/Σρ. The noise is more than that of
        equal correlations, (Σρ)²/(length − 1), and less than that of the largest, Σρ.
        """
        whole, n = cls.of(sums), spread.n
        lengthened = (whole.length(n) - 1) * whole.alike  # Σρ
        if not lengthened > 0 or math.isnan(spread.noise):
            return whole
        squares = min(max(n * spread.noise - 1, lengthened * whole.alike), lengthened)
        return cls(lengthened**2 / squares / (n - 1), squares / lengthened)

    def length(self, n: int) -> float:
        """Vectors per block where n of them are kept, chosen at random."""
        return 1 + self.pairs * (n - 1)

    def parts(self, n: int, *, centred: bool = True) -> tuple[tuple[float, float], tuple[float, float]]:
        """Degrees of freedom and variance of the differences between blocks, and of those inside them."""
        length = self.length(n)
        return (n / length - centred, 1 + (length - 1) * self.alike), (n - n / length, 1 - self.alike)

    def free(self, n: int) -> float:
        """Effective degrees of freedom of the covariance: n − 1 where vectors are independent.

        As many independent vectors scatter tr S² as much as these do. (Σfv)²/Σfv² over the two parts.

        >>> Dependence().free(20), round(Dependence(pairs=1 / 19, alike=1.0).free(20), 6)
        (19.0, 9.0)
        """
        parts = self.parts(n)
        return sum(f * v for f, v in parts) ** 2 / sum(f * v * v for f, v in parts)


@lru_cache(maxsize=256)
def isotropic_spectra(n: int, width: int) -> tuple[Tensor, ...]:
    """Draws of the eigenvalues of XᵀX, X of n Gaussian vectors in `width` dimensions; each [width].

    Narrow clouds vary more from draw to draw, so they get more draws.
    """
    random = np.random.default_rng([n, width])
    short, long = min(n, width), max(n, width)
    draws = []
    for _ in range(min(64, max(4, 1024 // width))):
        diagonal = random.chisquare(long - np.arange(short))
        below = random.chisquare(np.arange(short - 1, 0, -1))
        main = diagonal + np.concatenate([[0.0], below])
        values = eigvalsh_tridiagonal(main, np.sqrt(diagonal[:-1] * below)) if short > 1 else main
        full = torch.zeros(width, dtype=torch.float64)
        full[width - short :] = torch.from_numpy(np.clip(values, 0, None))
        draws.append(full)
    return tuple(draws)


def expected(reading: Callable[[Tensor], float], n: int, width: int) -> float:
    """The mean of a reading of the spectrum over such clouds."""
    return float(np.mean([reading(spectrum) for spectrum in isotropic_spectra(n, width)]))


def expected_of_dependent(
    reading: Callable[[Tensor], float], n: int, width: int, dependence: Dependence, *, centred: bool
) -> float:
    """The mean of a reading of the spectrum over clouds with this dependence, about their means or not."""
    base = expected(reading, n - centred, width)
    if not dependence.alike:
        return base
    with_it, without = (
        limiting_spectrum(*each.parts(n, centred=centred), width) for each in (dependence, Dependence())
    )
    return base * reading(with_it) / reading(without)


@lru_cache(maxsize=64)
def limiting_spectrum(one: tuple[float, float], other: tuple[float, float], width: int) -> Tensor:
    """Where the eigenvalues of two Wishart matrices' sum lie, ascending, over d: [d].

    Each has (degrees of freedom, variance). For large sizes the Stieltjes transform m of the eigenvalues over
    d satisfies x = −1/m + Σ (f/d)·v/(1 + v·m) (Silverstein 1995), a cubic in m; their density at x is Im m/π.
    """
    (free, a), (more, b) = one, other
    if b < LEAST:
        more, b = 0.0, 1.0
    free, more = free / width, more / width
    most = a * (1 + math.sqrt(free)) ** 2 + b * (1 + math.sqrt(more)) ** 2
    x = np.geomspace(1e-7 * most, most, POINTS)
    cubic = x * a * b
    square = (x * (a + b) + a * b * (1 - free - more)) / cubic
    linear = (x + a * (1 - free) + b * (1 - more)) / cubic
    p, q = linear - square**2 / 3, 2 * square**3 / 27 - square * linear / 3 + 1 / cubic
    root = q**2 / 4 + p**3 / 27  # above zero: one real root and two complex ones
    step = np.sqrt(np.maximum(root, 0))
    density: Array = np.where(root > 0, np.cbrt(step - q / 2) - np.cbrt(-step - q / 2), 0)
    mass = np.concatenate([[0], np.cumsum((density[1:] + density[:-1]) * np.diff(x))])
    empty = max(0.0, 1 - free - more)  # of the dimensions, where degrees of freedom are fewer
    share = (np.arange(width) + 0.5) / width
    rising = np.concatenate([[True], np.diff(mass) > 0])
    places = np.interp((share - empty) / (1 - empty), mass[rising] / mass[-1], x[rising])
    return torch.from_numpy(np.where(share < empty, 0, places))


def isotropic_clouds(n: int, width: int) -> Iterator[Tensor]:
    """Gaussian clouds [n, width], the same at every call; the fewer the larger they are."""
    random = torch.Generator().manual_seed(1_000_003 * n + width)
    for _ in range(draws(n, width)):
        yield torch.randn(n, width, dtype=torch.float64, generator=random)


def draws(n: int, width: int) -> int:
    """How many clouds are drawn for a null.

    >>> draws(40, 6), draws(2048, 768)
    (16, 2)
    """
    return min(16, max(2, 2_000_000 // (n * (n + width) + width**2)))


@lru_cache(maxsize=256)
def expected_of_clouds(reading: Callable[[Tensor], float], n: int, width: int) -> float:
    """The mean of a reading of such clouds."""
    return float(np.mean([reading(cloud) for cloud in isotropic_clouds(n, width)]))
