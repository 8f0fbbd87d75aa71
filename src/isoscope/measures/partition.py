"""Readings of the partition function: how even Σ exp(x·c) is over directions c.

The expansions to first and second order need sums only and are exact; I itself needs the vectors once more
when the directions are known, and is read off a sample of them; of a matrix of weights, off all its rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from statistics import fmean
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import torch
from scipy.linalg import eigh
from torch import Tensor

from isoscope.geometry import partition
from isoscope.kernels.partition import forms
from isoscope.measures.base import Measure, undefined
from isoscope.measures.null import draws, isotropic_spectra
from isoscope.results.reading import Reading
from isoscope.stats.centre import Centre
from isoscope.stats.moments import Moments
from isoscope.stats.reservoir import Reservoir
from isoscope.stats.weights import AllRows

_SOURCE = "Mu & Viswanath 2018; Machina & Mercer 2024"
_SAMPLED = "none: min and max over directions"


@dataclass(frozen=True, eq=False)
class FormRows:
    """Rows of a matrix that was centred and lost `removed` top directions: as `AllRows`, with such a null."""

    points: Tensor  # [n, d]
    gram: Tensor  # XᵀX [d, d]
    removed: int

    @property
    def count(self) -> int:
        """How many there are: all of them are here."""
        return len(self.points)


Points = Reservoir | AllRows | FormRows
Pair = tuple[tuple[float, ...], tuple[float, ...]]
_KNOWN: WeakKeyDictionary[Points, Pair] = WeakKeyDictionary()  # as long as the record is there
_ROWS = 4096  # at a time
_LARGE = 2**22  # numbers in a matrix from which a null is drawn in float32
_KEPT = 2**23  # numbers in a matrix up to which directions are kept for the other sites of a model
_SLOW = 10**9  # products from which a null is one draw: so many rows vary little


def _of_sample(number: int) -> Callable[[Points], Reading]:
    """Read one of the three forms of `geometry.partition.forms`."""

    def read(record: Points) -> Reading:
        values, nulls = _forms(record)
        if math.isnan(values[number]):
            return undefined(len(record.points), "no vector that is not zero")
        return Reading(values[number], len(record.points), nulls[number], note=sampled(record))

    return read


def _forms(record: Points) -> Pair:
    """I of the rows in its three forms, and the means over clouds of the same norms that point anywhere."""
    if record not in _KNOWN:
        gram = None if isinstance(record, Reservoir) else record.gram
        removed = record.removed if isinstance(record, FormRows) else None
        points = record.points if isinstance(record, Reservoir) else record.points.cpu()
        _KNOWN[record] = _both(points, gram, removed)
    return _KNOWN[record]


def partition_null(record: Points) -> tuple[float, ...]:
    """What the three forms are for clouds of the same norms that point anywhere."""
    return _forms(record)[1]


def _both(points: Tensor, gram: Tensor | None, removed: int | None) -> Pair:
    n, width = points.shape
    dtype = torch.float64 if n * width < _LARGE else torch.float32
    norm = torch.cat([rows.double().norm(dim=1, keepdim=True) for rows in points.split(_ROWS)]).to(dtype)  # type: ignore[no-untyped-call]
    values, nulls = forms(points, gram=gram), []
    for directions in random_directions(n, width, dtype, points.device):
        anywhere = directions * norm
        if removed is not None:
            _take_out(anywhere, removed)
        nulls.append(forms(anywhere, dtype))
    return values, tuple(map(fmean, zip(*nulls, strict=True)))


def random_directions(n: int, width: int, dtype: torch.dtype, device: torch.device) -> Iterable[Tensor]:
    """Clouds of unit vectors that point anywhere, the same for the same n and width."""
    count = (draws(n, width) if n * width**2 < _SLOW else 1) if n else 0
    if n * width <= _KEPT:
        return _kept_directions(n, width, count, dtype, device)
    return _drawn_directions(n, width, count, dtype, device)


def _drawn_directions(
    n: int, width: int, count: int, dtype: torch.dtype, device: torch.device
) -> Iterator[Tensor]:
    random = torch.Generator().manual_seed(1_000_003 * n + width)
    for _ in range(count):
        drawn = torch.randn(n, width, dtype=dtype, generator=random)
        drawn /= drawn.norm(dim=1, keepdim=True)
        yield drawn.to(device)


@lru_cache(maxsize=2)
def _kept_directions(
    n: int, width: int, count: int, dtype: torch.dtype, device: torch.device
) -> tuple[Tensor, ...]:
    return tuple(_drawn_directions(n, width, count, dtype, device))


def _take_out(points: Tensor, removed: int) -> None:
    """Centre the points [n, d] in place and take out their top directions; as large in all as they were.

    As large, because the norms they were given are those of rows that had lost as much already.
    """
    size = points.norm()
    points -= points.mean(0)
    if removed:
        top = largest((points.T @ points).double(), removed).to(points.dtype)
        for rows in points.split(_ROWS):  # type: ignore[no-untyped-call]
            rows -= (rows @ top) @ top.T
    left = points.norm()
    if left > 0:
        points *= size / left


def largest(matrix: Tensor, count: int) -> Tensor:
    """The eigenvectors of the largest eigenvalues of a symmetric matrix [d, d], largest first, [d, count]."""
    last = len(matrix) - 1
    found = eigh(matrix.numpy(), subset_by_index=[last + 1 - count, last])[1]  # much less work than all
    return torch.from_numpy(found).flip(1)


def sampled(record: Points) -> str:
    """Say it where not all vectors are in the sample."""
    return f"sampled from {int(record.count):,} vectors" if len(record.points) < record.count else ""


def _first(record: Centre) -> Reading:
    sums = record.sums
    if sums.n < 1:
        return undefined(0, "no vector")
    n, total = sums.n, float(sums.total.sum(0).norm())
    anywhere = _anywhere(float(sums.squared.sum()), sums.total.shape[1], 1024)
    return Reading((n - total) / (n + total), n, float(np.mean((n - anywhere) / (n + anywhere))))


def _anywhere(squares: float, width: int, draws: int) -> npt.NDArray[np.float64]:
    """Draws of ‖Σx‖ for vectors of these squared norms in all that point anywhere."""
    chi = np.random.default_rng(width).chisquare(width, draws)
    return np.sqrt(squares * chi / width)


def _second(record: Moments) -> Reading:
    n = record.n
    if n < 1:
        return undefined(0, "no vector")
    width, squares = len(record.extent), float(record.extent.sum())
    value = second_order(n, n * float(record.whole.mean[0].norm()), record.extent)
    spectra = isotropic_spectra(n, width)
    anywhere = _anywhere(squares, width, len(spectra)).tolist()
    nulls = [
        second_order(n, total, spectrum * squares / (n * width))
        for total, spectrum in zip(anywhere, spectra, strict=True)
    ]
    return Reading(value, n, float(np.mean(nulls)))


def second_order(n: int, total: float, values: Tensor) -> float:
    """I to second order, of n, ‖Σx‖ and the eigenvalues of XᵀX, which ascend."""
    return float((n - total + values[0] / 2) / (n + total + values[-1] / 2))


_measure = partial(
    Measure,
    family="partition",
    stats=(Reservoir,),
    interval=_SAMPLED,
    source=_SOURCE,
    bounds=(0.0, 1.0),
    unchanged_by=frozenset({"rotation"}),
    extra=True,
    null="simulated: the same norms, random directions",
)

MEASURES = (
    _measure(
        name="partition_isotropy",
        read=_of_sample(0),
        definition=partition.partition_isotropy,
        title="partition isotropy",
        formula="I = min Z/max Z, Z(c) = Σ exp(x·c), c = ± the eigenvectors of XᵀX",
        says="Whether a softmax over these vectors would favour a direction: 1 when none, 0 when one.",
        misleads="It depends on the scale: vectors of large norm read 0 however they point; see the form in "
        "units of the mean norm. Made for vocabulary matrices.",
    ),
    _measure(
        name="partition_isotropy_one_sign",
        read=_of_sample(1),
        definition=partition.partition_isotropy_one_sign,
        title="partition isotropy, one sign",
        formula="the same, each eigenvector with its largest coordinate positive",
        says="The form of published code, to compare with; its number hangs on signs that mean nothing.",
        misleads="Rotate the cloud and it changes: .449 where both signs give .203.",
        unchanged_by=frozenset(),
    ),
    _measure(
        name="partition_isotropy_unit",
        read=_of_sample(2),
        definition=partition.partition_isotropy_unit,
        title="partition isotropy, unit norm",
        formula="I of the vectors over their mean norm",
        says="Partition isotropy without the scale: what the directions alone do.",
        misleads="Near 1 even for anisotropic clouds in many dimensions: e^x is nearly straight there.",
        source="isoscope",
        unchanged_by=frozenset({"rotation", "scale"}),
    ),
    _measure(
        name="partition_isotropy_first",
        stats=(Centre,),
        read=_first,
        definition=partition.partition_isotropy_first,
        title="partition isotropy, first order",
        formula="(n − ‖Σx‖) / (n + ‖Σx‖)",
        says="What the mean alone does to it.",
        misleads="An expansion for short vectors: negative once ‖x̄‖ exceeds 1.",
        null="simulated: ‖Σx‖ of the same norms, random directions",
        bounds=(-1.0, 1.0),
    ),
    _measure(
        name="partition_isotropy_second",
        stats=(Moments,),
        read=_second,
        definition=partition.partition_isotropy_second,
        title="partition isotropy, second order",
        formula="(n − ‖Σx‖ + σ²_min/2) / (n + ‖Σx‖ + σ²_max/2)",
        says="What the mean and the largest and smallest directions do to it.",
        misleads="An expansion for short vectors, as the first order.",
        bounds=(-1.0, 1.0),
    ),
)
