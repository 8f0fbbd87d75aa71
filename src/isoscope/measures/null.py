"""What is read when nothing is there: of an isotropic Gaussian cloud of the same n and d.

The eigenvalues of XᵀX for such a cloud are drawn exactly, from the bidiagonal model of Dumitriu &
Edelman (2002): O(d) random numbers and a tridiagonal eigenproblem, whatever n is. What needs the
vectors themselves is read off whole clouds, a few where they are large: those vary little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
import torch
from scipy.linalg import eigvalsh_tridiagonal
from torch import Tensor


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
