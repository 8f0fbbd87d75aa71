"""A stream of vectors becomes the record that a repair is read off; no vector is kept.

Covariances are gathered in float64 or, of float32 from 512 dimensions on, `fast`: products in float32 of rows
centred first, added up in float64, in half the time and off by up to `fast_error`. A fit that divides by
narrow directions asks again in float64 (transforms.py). Twin: `kernels.scatter.scatter`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from isoscope.errors import IsoscopeError
from isoscope.kernels.scatter.scatter import WIDE, scatter
from isoscope.repair.keep.maps import Map, cast
from isoscope.stats.moments import Moments
from isoscope.stats.seen import Vectors, home

Array = np.ndarray[Any, Any]
Source = Any  # an array or tensor [n, d], or something that can be walked over again and again for such
ROWS, SLICE = 16384, 8192


class SumsOverflowError(IsoscopeError):
    """Sums of squares are not finite."""


R = TypeVar("R", bound=Any)  # a record that can `merge` with another of its kind


@dataclass(frozen=True)
class Gathered(Generic[R]):
    """A record, of how many vectors, how many were left out for NaN or Inf, and how coarse numbers came.

    `coarse` is the step from 1 to the next number, of float32 at most: 16 bits are read as they are.
    """

    record: R
    n: int
    left_out: int
    coarse: float


def gather(
    source: Source, fold: Callable[[Tensor], R], through: Sequence[Map] = (), *, fast: bool = False
) -> Gathered[R]:
    """Fold all vectors of a source, each batch moved through the maps that come before."""
    found: R | None = None
    n = left_out = 0
    width: int | None = None
    coarse = torch.finfo(torch.float64).eps
    for given in batches(source):
        if width is not None and given.shape[1] != width:
            raise IsoscopeError(
                f"one batch has vectors of {width} dimensions, a later one of {given.shape[1]}; "
                "a repair is fitted on vectors of one width."
            )
        width = given.shape[1]
        if given.dtype != torch.float64:
            coarse = torch.finfo(torch.float32).eps
        new, kept = _folded(given, fold, through, fast and is_fast(given))
        n, left_out = n + kept, left_out + len(given) - kept
        if new is not None:
            found = new if found is None else found.merge(new)
    if n < 2 or found is None:
        lost_too = f" ({left_out} more have NaN or Inf)" if left_out else ""
        raise IsoscopeError(f"a repair is fitted on at least 2 vectors; got {n}{lost_too}.")
    return Gathered(found, n, left_out, coarse)


def _folded(
    given: Tensor, fold: Callable[[Tensor], R], through: Sequence[Map], fast: bool
) -> tuple[R | None, int]:
    """The record of the finite vectors of one batch, and how many; fast sums tell by themselves of NaN."""
    if fast:
        with suppress(SumsOverflowError):
            return fold(_moved(given.float(), through)), len(given)
    points = finite(given)[0]
    if len(points) == 0:
        return None, 0
    return fold(_moved(points.float() if fast else points.double(), through)), len(points)


def _moved(points: Tensor, through: Sequence[Map]) -> Tensor:
    for step in through:
        points = cast(step, points).move(points)
    return points


def batches(source: Source) -> Iterator[Tensor]:
    """Walk over a source, a few thousand vectors [n, d] at a time."""
    if isinstance(source, Tensor | np.ndarray):
        if source.ndim != 2 or source.shape[1] < 1:
            raise IsoscopeError(f"vectors are [vectors, dimensions]; got the shape {tuple(source.shape)}.")
        for start in range(0, len(source), ROWS):
            yield as_tensor(source[start : start + ROWS])
    elif isinstance(source, Iterable):
        for given in source:
            if not isinstance(given, Tensor | np.ndarray):
                raise IsoscopeError(f"a batch is an array or tensor [n, d]; got {type(given).__name__}.")
            yield from batches(given)
    else:
        raise IsoscopeError(
            f"vectors are an array, a tensor or batches of them; got {type(source).__name__}."
        )


def as_tensor(given: Tensor | Array) -> Tensor:
    """A tensor of real numbers, where sums are kept; one that cannot be written to is copied."""
    if isinstance(given, np.ndarray):
        given = from_array(given)
    if given.is_complex():
        raise IsoscopeError("vectors hold real numbers; got complex ones.")
    given = given.detach().to(home(given.device))
    return given if given.is_floating_point() else given.double()


def from_array(given: Array) -> Tensor:
    """The same numbers as a tensor, without a copy where torch takes the array as it is."""
    if given.dtype.kind not in "biufc":
        raise IsoscopeError(f"vectors hold numbers; got an array of {given.dtype}.")
    if given.dtype.itemsize > np.dtype(np.float64).itemsize and given.dtype.kind == "f":
        given = given.astype(np.float64)
    given = given if given.dtype.isnative else given.astype(given.dtype.newbyteorder("="))
    known = given.flags.writeable and min(given.strides, default=0) >= 0
    return torch.from_numpy(given if known else given.copy())  # else torch warns, or refuses


def finite(points: Tensor) -> tuple[Tensor, int]:
    """The vectors without NaN and Inf, and how many have some; the sum of all tells that none has."""
    if bool(points.sum(dtype=torch.float64 if points.dtype == torch.float64 else torch.float32).isfinite()):
        return points, 0
    kept = points.isfinite().all(1)
    return points[kept], int((~kept).sum())


def is_fast(points: Tensor) -> bool:
    """Whether products in float32 would be faster, and vectors are no more precise than that."""
    return not points.is_cuda and points.dtype != torch.float64 and points.shape[1] >= WIDE


def fast_error(n: int) -> float:
    """How far the covariance of n vectors may be off that was gathered fast, as a share of the variances.

    Measured at 768 dimensions: 2.5e-7 of 16 thousand vectors, .9e-7 of 131 thousand; it falls as 1/√n.
    """
    return 3e-7 / math.sqrt(max(1.0, n / ROWS))


def moments_of(points: Tensor) -> Moments:
    """Mean and centred scatter of `points` [n, d], in one part, on the CPU; float32 is gathered fast."""
    points = points if points.dtype in (torch.float32, torch.float64) else points.float()
    if points.is_cuda:
        mean = points.double().mean(0)
        total = scatter(points, torch.ones_like(points[:, 0]), mean)
    else:
        found = _summed(points.numpy())
        if found is None and points.dtype == torch.float32:
            found = _summed(points.double().numpy())
        if found is None:
            raise SumsOverflowError("the squares of some vectors overflow; scale them down first.")
        mean, total = map(torch.from_numpy, found)
    count = torch.tensor([len(points)], dtype=torch.float64)
    return Moments(count, mean.cpu()[None], total.cpu()[None])


def _summed(rows: Array) -> tuple[Array, Array] | None:
    """The mean [d] and the centred scatter [d, d] of rows [n, d]; None where squares overflow.

    All in numpy: torch would wake threads of its own between the products, which costs more.
    """
    width = rows.shape[1]
    near = rows[::64].mean(0)  # near the mean is enough: the rest puts it right
    rest, total = np.zeros(width), np.zeros((width, width))
    room = np.empty((min(SLICE, len(rows)), width), rows.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(rows), SLICE):
            part = rows[start : start + SLICE]
            centred = np.subtract(part, near, out=room[: len(part)])
            rest += centred.sum(0)
            total += centred.T @ centred  # numpy sees that both are one matrix, and does half the work
        total -= np.outer(rest, rest) / len(rows)
    return (near + rest / len(rows), total) if np.isfinite(total).all() else None


def seen(points: Tensor) -> Vectors:
    """The same vectors as records of stats take them, each standing alone; nothing here looks at groups."""
    return Vectors.see(points, None, torch.zeros(len(points), dtype=torch.long))
