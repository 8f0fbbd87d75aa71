"""Fit a recipe of repairs from a stream.

Each step is fitted on what the steps before it give. What follows an affine step is not read again: mean and
covariance move with it, m → A(m − b) and Σ → AΣAᵀ, so ``centre,abtt,whiten:128`` takes one walk. With them
goes the covariance that rounding alone may have made: a direction that has no more than that, as one that
leaves a LayerNorm, has no spread, and to divide by it would be to add noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, cast

import torch
from torch import Tensor

from isoscope.errors import IsoscopeError
from isoscope.repair.fit import fits
from isoscope.repair.fit.clusters import ByCluster, all_but_the_tops, find_clusters
from isoscope.repair.fit.gather import Gathered, Source, fast_error, gather, moments_of, seen
from isoscope.repair.fit.kinds import Asked, parse
from isoscope.repair.fit.sample import Sample
from isoscope.repair.keep import maps
from isoscope.repair.keep.maps import Affine, Clustered, Map
from isoscope.repair.keep.repair import Repair
from isoscope.stats.dimensions import Dimensions
from isoscope.stats.directions import Contributions
from isoscope.stats.moments import Moments

__all__ = ["Repair", "fit"]

EXACT = 2e-6  # of 1: how far a variance after whitening may be off
OFF = 16  # roundings by which a coordinate may be off that a model worked out


def fit(
    recipe: str, vectors: Source, *, precise: bool = False, facts: Mapping[str, object] | None = None
) -> Repair:
    """Fit a recipe (``"abtt,whiten:128"``) on vectors.

    `vectors` is an array or tensor [n, d], or batches of such that can be walked over again. Vectors with NaN
    or Inf are left out and counted; `notes` say so, and where there were too few. `precise` gathers in
    float64 from the outset: for vectors that are dear to see again, as a model's states are.

    >>> cloud = torch.tensor([[3.0, 0.0], [1.0, 2.0], [1.0, -2.0]])
    >>> repaired = fit("centre", cloud).apply(cloud)
    >>> [round(x, 6) + 0.0 for x in repaired.mean(0).tolist()]
    [0.0, 0.0]
    """
    asked = parse(recipe)
    fitting = _Fitting(vectors, precise or isinstance(vectors, Iterator))
    for place in range(len(asked)):
        fitting.add(asked[place:])
    notes = list(dict.fromkeys(filter(None, fitting.notes)))
    if fitting.left_out:
        every = fitting.n + fitting.left_out
        notes.insert(0, f"{fitting.left_out} of {every} vectors have NaN or Inf and are left out")
    fitted = (tuple(fitting.steps), fitting.n, fitting.left_out)
    return Repair(",".join(fitting.names), *fitted, tuple(notes), facts or {})


@dataclass(frozen=True, eq=False)
class _Held:
    """Mean and scatter of vectors, and the covariance that rounding alone may have made, [d, d]."""

    moments: Moments
    rounding: Tensor

    @classmethod
    def of(cls, found: Gathered[Moments], fast: bool) -> _Held:
        """Each coordinate may be off by so much of itself, and a sum in float32 by so much of all."""
        spread, n = fits.Spread.of(found.record), found.n
        rounding = torch.diag((OFF * found.coarse) ** 2 * (spread.mean**2 + spread.variance))
        if fast:
            rounding += torch.diag(fast_error(n) * spread.variance)
        return cls(found.record, rounding)

    def after(self, step: Affine) -> _Held:
        """The same of vectors after an affine map."""
        matrix, moments = step.matrix, self.moments
        mean = (moments.mean[0] - step.mean) @ matrix.T
        moved = Moments(moments.count, mean[None], (matrix @ moments.scatter[0] @ matrix.T)[None])
        # the products round too: by their largest stretch, which is that of a row as rows are orthogonal
        size = float(moments.scatter[0].norm() * matrix.norm(dim=1).max() ** 2) / (moments.n - 1)
        products = len(matrix) * torch.finfo(matrix.dtype).eps * size * torch.eye(len(matrix)).to(matrix)
        return _Held(moved, matrix @ self.rounding @ matrix.T + products)

    def spectrum(self) -> fits.Spectrum:
        """The directions of the covariance."""
        return fits.Spectrum.of(self.moments, self.rounding)


class _Fitting:
    """The steps so far, and the mean and covariance of what they give, where those are known."""

    def __init__(self, source: Source, precise: bool) -> None:
        self.source, self.precise = source, precise
        self.steps: list[Map] = []
        self.names: list[str] = []
        self.notes: list[str] = []
        self.n = self.left_out = 0
        self._walks = 0
        self._held: _Held | None = None
        self._since = 0  # how many steps came before the covariance was gathered
        self._fast = False  # whether it was gathered in float32

    def add(self, asked: tuple[Asked, ...]) -> None:
        """Fit the first of these steps; the others tell whether a covariance will be needed."""
        step, note = self._fit(asked[0], asked)
        self.steps.append(step)
        self.names.append(_named(asked[0], step))
        self.notes.append(note)
        held = self._held
        self._held = None if held is None or isinstance(step, Clustered) else held.after(step)

    def _fit(self, first: Asked, asked: tuple[Asked, ...]) -> tuple[Map, str]:
        match first.kind.name:
            case "centre":
                mean = self._spread(asked).mean
                return maps.Scaled(mean, torch.ones_like(mean)), ""
            case "standardise":
                return fits.standardise(self._spread(asked))
            case "rogue":
                return fits.rogue(self._walk(lambda x: Contributions.of(seen(x))).record, first), ""
            case "abtt":
                return fits.all_but_the_top(self._covariance().spectrum(), first), ""
            case "whiten":
                found = self._covariance().spectrum()
                if self._fast and not self._resolved(found, first):
                    found = self._covariance(again=True).spectrum()
                return fits.whiten(found, first)
            case _:
                near = find_clusters(self._walk(Sample.of).record, first)
                return all_but_the_tops(near, self._walk(lambda x: ByCluster.of(x, near)).record, first)

    def _spread(self, asked: tuple[Asked, ...]) -> fits.Spread:
        """Mean and variances, off the covariance where a step that follows will read it anyway."""
        alike = takewhile(lambda step: step.kind.reads != "clusters", asked)
        if self._held is not None or any(step.kind.reads == "moments" for step in alike):
            return fits.Spread.of(self._covariance().moments)
        return fits.Spread.of(self._walk(lambda x: Dimensions.of(seen(x))).record)

    def _covariance(self, *, again: bool = False) -> _Held:
        """Mean and covariance of what the steps so far give; `again` gathers them in float64."""
        if self._held is None or again:
            self._since = self._since if again else len(self.steps)
            self._fast = False
            fast = not (again or self.precise)
            held = _Held.of(self._walk(self._folded, self.steps[: self._since], fast=fast), self._fast)
            for step in self.steps[self._since :]:
                held = held.after(cast(Affine, step))
            self._held = held
        return self._held

    def _folded(self, points: Tensor) -> Moments:
        self._fast = self._fast or points.dtype == torch.float32
        return moments_of(points)

    def _resolved(self, found: fits.Spectrum, asked: Asked) -> bool:
        """Whether sums in float32 tell every direction that is asked for.

        Each entry of the covariance is off by a share of σ_iσ_j, so along u by that share of Σ u_i²σ_i².
        """
        assert self._held is not None
        kept = found.vectors[: asked.number(0, len(found.values))]
        variance = self._held.moments.scatter[0].diagonal() / (found.n - 1)
        return bool((fast_error(found.n) * (kept**2 @ variance) <= EXACT * found.values[: len(kept)]).all())

    def _walk(
        self, fold: Callable[[Tensor], Any], through: list[Map] | None = None, *, fast: bool = False
    ) -> Gathered[Any]:
        """The record of the whole source, of what the steps so far give unless others are named."""
        if self._walks and isinstance(self.source, Iterator):
            raise IsoscopeError(
                "this recipe walks over the vectors more than once, and what was given can be walked over "
                "once; give an array, a tensor or a list of batches."
            )
        self._walks += 1
        found = gather(self.source, fold, self.steps if through is None else through, fast=fast)
        self.n, self.left_out = found.n, found.left_out
        return found


def _named(asked: Asked, step: Map) -> str:
    """The step with the numbers that it came to have."""
    match step:
        case maps.Turned():
            numbers = [len(step.matrix)]
        case maps.Projected():
            numbers = [len(step.directions)]
        case maps.Clustered():
            numbers = list(step.directions.shape[:2])
        case maps.Scaled():
            numbers = [int((step.scale == 0).sum())] if asked.kind.numbers else []
    return str(Asked(asked.kind, tuple(numbers)))
