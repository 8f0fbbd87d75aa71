"""What W predicts of where attention falls, with the data's own increments in it; and what a random W would.

Σ enters through the joint covariance of a head's query and key increments, 2e×2e, whose root stands for
Σ^½W_Q and Σ^½W_K: the same spectrum, and no root of a d×d matrix. A random W of the head's own Frobenius
norms is drawn beside it and tests nothing: its ρ is nearly flat, and any slope at all beats it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from isoscope.geometry.propagation import (
    attention_profiles,
    expected_between,
    position_terms,
    propagation,
    regime,
)
from isoscope.geometry.spectra import Factors, QkSpectrum
from isoscope.kernels.spectra import qk_spectrum
from isoscope.models.weights.read import Projections
from isoscope.stats.profiles import BINS, averaged

WALKS = 2048  # of a head: errors of ρ of at most .011
RANDOM_WALKS = 4096  # each with a W of its own: errors of their mean ρ of at most .008
DRAWS = 19  # random W a layer for the mean of ‖W‖_F
BLOCK = 256  # random walks at a time: 16 MiB at 4,096 dimensions


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
    # the symmetric root: others have signs that rounding decides, and with them the walks that are drawn
    root = (vectors * values.clamp_min(0).sqrt()[..., None, :]) @ vectors.mT
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
    random_signal: Tensor  # [h, bins] the mean ρ of random W


def predict(found: Projections, covariance: Tensor, length: int, *, seed: int = 0) -> Predicted:
    """What the heads of one attention predict of a walk of `length` inputs with these increments."""
    query, key, covariance = (part.cpu().double() for part in (found.query, found.key, covariance))
    copies = len(query) // len(key)
    parts = walk_factors(query, key, found.scale, covariance)
    whole_keys, key_norms = key.isfinite().all(-1).all(-1), key.norm(dim=(1, 2))
    whole = query.isfinite().all(-1).all(-1) & whole_keys.repeat_interleave(copies, 0)
    spectrum = _scaled(qk_spectrum(parts.query, parts.key, scale=1.0), torch.where(whole, 1.0, math.nan))
    signal, way = _signal(spectrum, parts, length, WALKS, seed)
    softmax, _ = attention_profiles(parts, length, walks=WALKS, seed=seed)
    sizes = query.norm(dim=(1, 2)) * key_norms.repeat_interleave(copies, 0) * abs(found.scale)
    values = torch.linalg.eigvalsh(covariance).clamp_min(0)
    return Predicted(
        spectrum=spectrum,
        length=length,
        regimes=regime(spectrum.trace, spectrum.trace_square, spectrum.frobenius_square, length),
        signal=signal,
        way=way,
        softmax=torch.where(whole[:, None], averaged(softmax.value * length), math.nan),
        random_frobenius=sizes * _random_frobenius(values, query.shape[2], seed),
        random_signal=_random_signal(sizes, values, query.shape[2], length, seed),
    )


def _signal(
    spectrum: QkSpectrum, parts: Factors, length: int, walks: int, seed: int
) -> tuple[Tensor, tuple[str, ...]]:
    """ρ over stretches of t/T, [h, bins], at the middle of each where it is long; and how it was had."""
    places = _places(length)
    found = propagation(spectrum, parts, length, walks=walks, seed=seed, positions=places)
    return found.value if places is not None else averaged(found.value), found.way


def _places(length: int) -> Tensor | None:
    """The positions in the middle of each stretch; None where stretches are short, and all are wanted."""
    middles = ((torch.arange(BINS) + 0.5) * length / BINS).ceil().long()
    return middles if length >= 2 * BINS else None


def _scaled(spectrum: QkSpectrum, size: Tensor) -> QkSpectrum:
    """What the prediction reads of the spectrum of size·W, `size` [h]; NaN makes a head NaN."""
    return replace(
        spectrum,
        trace=spectrum.trace * size,
        trace_square=spectrum.trace_square * size**2,
        frobenius_square=spectrum.frobenius_square * size**2,
        effective_rank=spectrum.effective_rank * size**0,
    )


def _random_frobenius(values: Tensor, inner: int, seed: int) -> float:
    """The mean ‖Σ^½WΣ^½‖_F of random W of which both factors [d, e] have norm 1; `values` [d] are Σ's."""
    random = torch.Generator().manual_seed(seed)
    sizes = []
    for _ in range(DRAWS):
        made = torch.randn(2, len(values), inner, dtype=torch.float64, generator=random)
        made = made / made.norm(dim=(1, 2), keepdim=True)
        query, key = made.mT @ (values[:, None] * made)
        sizes.append((query * key).sum().sqrt())
    return float(torch.stack(sizes).mean())


def _random_signal(sizes: Tensor, values: Tensor, inner: int, length: int, seed: int) -> Tensor:
    """The mean ρ over random W, Gaussian W_Q and W_K of norms with product `sizes` [h]: [h, bins].

    Twin: `propagation` of many random W. Given x_T the query is |x_T|·a and the key's side one Gaussian
    vector g, so that every walk has a W of its own for 2d + e numbers: x_TᵀWx_T = |x_T||a|·gᵀx_T/(de) and
    ‖Σ^½Wᵀx_T‖ = |x_T||a|·‖Σ^½g‖/(de). −g is as likely as g, and both are taken.
    """
    width, places = len(values), _places(length)
    apart, kappa = position_terms(length, values.device)
    if places is not None:
        apart, kappa = apart[places - 1], kappa[places - 1]
    bridge = (kappa - apart**2 / length).clamp_min(0).sqrt()
    random = torch.Generator().manual_seed(seed)
    total = torch.zeros(len(sizes), len(apart), dtype=torch.float64)
    for start in range(0, RANDOM_WALKS, BLOCK):
        number = min(BLOCK, RANDOM_WALKS - start)
        drawn = torch.randn(number, 2 * width + inner, dtype=torch.float64, generator=random)
        key, asked = drawn[:, width : 2 * width], drawn[:, 2 * width :]
        last = math.sqrt(length) * drawn[:, :width] * values.sqrt()
        query = last.norm(dim=1) * asked.norm(dim=1) / (width * inner)
        own, norm = query * (key * last).sum(1), query * (key * values.sqrt()).norm(dim=1)
        for head, size in enumerate(sizes.tolist()):
            lean = (size * own / length)[:, None] * apart
            spread = (size * norm)[:, None] * bridge
            total[head] += (
                expected_between(lean, spread, length) + expected_between(-lean, spread, length)
            ).sum(0)
    mean = total / (2 * RANDOM_WALKS)
    return mean if places is not None else averaged(mean)
