"""What W predicts of where attention falls, with the data's own increments in it; and what a random W would.

Decided here: Σ enters through the joint covariance of a head's query and key increments, 2e×2e, whose root
stands for Σ^½W_Q and Σ^½W_K: the same spectrum, and no root of a d×d matrix. ρ(t) is predicted for as many
positions as last queries see keys on average. The null is a random W: Gaussian factors of the head's own
Frobenius norms, the same Σ, the same way of predicting. It is not zero: any W at all favours the middle.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from isoscope.geometry.propagation import (
    attention_profiles,
    propagation,
    regime,
)
from isoscope.geometry.spectra import Factors, QkSpectrum
from isoscope.kernels.spectra import qk_spectrum
from isoscope.models.weights.read import Projections
from isoscope.stats.profiles import BINS, averaged

WALKS, RANDOM_WALKS = 2048, 512  # of a head, and of each random W: errors of ρ of at most .011 and .022
DRAWS, SOFTMAX_DRAWS = 19, 5  # random W a layer: with 19 the smallest p is .05


def walk_factors(query: Tensor, key: Tensor, scale: float, covariance: Tensor) -> Factors:
    """Σ^½W as its factors, [h, 2e, e] each, from query [h, d, e], key [g, d, e] and Σ [d, d].

    Twin: `geometry.spectra.factors` with a root of Σ. A head with NaN or Inf is zero.
    """
    inner = query.shape[2]
    keys = key.repeat_interleave(len(query) // len(key), 0)
    both = torch.cat([query.double() * scale, keys.double()], dim=2)
    joint = both.mT @ (covariance.double() @ both)
    whole = joint.isfinite().all(-1).all(-1)
    joint = torch.where(whole[:, None, None], (joint + joint.mT) / 2, 0.0)
    values, vectors = torch.linalg.eigh(joint)
    root = values.clamp_min(0).sqrt()[..., None] * vectors.mT
    return Factors(root[..., :inner], root[..., inner:], query.shape[1])


@dataclass(frozen=True, eq=False)
class Predicted:
    """Of every head: its spectrum with Σ in it, where signal passes, and where a random W would let it."""

    spectrum: QkSpectrum
    length: int  # T
    regimes: tuple[str, ...]
    signal: Tensor  # [h, bins] ρ
    way: tuple[str, ...]
    softmax: Tensor  # [h, bins] the density of attention over walks by the true softmax
    random_frobenius: Tensor  # [h] the mean ‖W‖_F of random W
    random_signal: Tensor  # [n, h, bins]
    random_softmax: Tensor  # [m, h, bins]


def predict(found: Projections, covariance: Tensor, length: int, *, seed: int = 0) -> Predicted:
    """What the heads of one attention predict of a walk of `length` inputs with these increments."""
    query, key, covariance = (part.cpu().double() for part in (found.query, found.key, covariance))
    parts = walk_factors(query, key, found.scale, covariance)
    whole = query.isfinite().all(-1).all(-1) & key.isfinite().all(-1).all(-1).repeat_interleave(
        len(query) // len(key), 0
    )
    spectrum = _scaled(qk_spectrum(parts.query, parts.key, scale=1.0), torch.where(whole, 1.0, math.nan))
    signal, way = _signal(spectrum, parts, length, WALKS, seed)
    softmax, _ = attention_profiles(parts, length, walks=WALKS, seed=seed)
    norms = query.norm(dim=(1, 2)) * key.norm(dim=(1, 2)).repeat_interleave(len(query) // len(key), 0)
    units = _random_units(query.shape[1], query.shape[2], covariance, seed)
    frobenius, passing, attending = zip(
        *_of_random(units, (norms * abs(found.scale)).tolist(), length, seed), strict=True
    )
    return Predicted(
        spectrum=spectrum,
        length=length,
        regimes=regime(spectrum.trace, spectrum.trace_square, spectrum.frobenius_square, length),
        signal=signal,
        way=way,
        softmax=torch.where(whole[:, None], averaged(softmax.value * length), math.nan),
        random_frobenius=torch.stack(frobenius),
        random_signal=torch.stack(passing, dim=1),
        random_softmax=torch.stack(attending, dim=1),
    )


def _signal(
    spectrum: QkSpectrum, parts: Factors, length: int, walks: int, seed: int
) -> tuple[Tensor, tuple[str, ...]]:
    """ρ over stretches of t/T, [h, bins], at the middle of each where it is long; and how it was had."""
    if length < 2 * BINS:
        found = propagation(spectrum, parts, length, walks=walks, seed=seed)
        return averaged(found.value), found.way
    middles = ((torch.arange(BINS) + 0.5) * length / BINS).ceil().long()
    found = propagation(spectrum, parts, length, walks=walks, seed=seed, positions=middles)
    return found.value, found.way


def _scaled(spectrum: QkSpectrum, size: Tensor) -> QkSpectrum:
    """What the prediction reads of the spectrum of size·W, `size` [h]; NaN makes a head NaN."""
    return replace(
        spectrum,
        trace=spectrum.trace * size,
        trace_square=spectrum.trace_square * size**2,
        frobenius_square=spectrum.frobenius_square * size**2,
        effective_rank=spectrum.effective_rank * size**0,
    )


def _random_units(width: int, inner: int, covariance: Tensor, seed: int) -> Factors:
    """Random W of which both factors have norm 1, Σ in them, as so many heads."""
    random = torch.Generator().manual_seed(seed)
    made = torch.randn(2, DRAWS, width, inner, dtype=torch.float64, generator=random)
    query, key = made / made.norm(dim=(2, 3), keepdim=True)
    return walk_factors(query, key, 1.0, covariance)


def _of_random(
    units: Factors, sizes: list[float], length: int, seed: int
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """For each head's size: the mean ‖W‖_F of random W, their ρ [n, bins] and their attention [m, bins]."""
    unit = qk_spectrum(units.query, units.key, scale=1.0)
    for size in sizes:
        if not math.isfinite(size):
            unknown = torch.full((DRAWS, BINS), math.nan, dtype=torch.float64)
            yield unknown[0, 0], unknown, unknown[:SOFTMAX_DRAWS]
            continue
        spectrum = _scaled(unit, torch.full((DRAWS,), size, dtype=torch.float64))
        parts = replace(units, query=units.query * size)
        few = Factors(parts.query[:SOFTMAX_DRAWS], parts.key[:SOFTMAX_DRAWS], parts.width)
        signal, _ = _signal(spectrum, parts, length, RANDOM_WALKS, seed)
        softmax, _ = attention_profiles(few, length, walks=RANDOM_WALKS, seed=seed)
        frobenius = spectrum.frobenius_square.sqrt().mean()
        yield frobenius, signal, averaged(softmax.value * length)
