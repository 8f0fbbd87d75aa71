"""Where attention falls if the inputs walk at random: what W alone predicts (Bao et al. 2024).

Inputs x_t = ξ_1 + … + ξ_t with ξ ~ N(0, Σ), t = 1 … T; the last one queries, ω_t = x_TᵀWx_t is its score for
key t, ω̄ the mean over t. Signal passes at t where the softmax made piecewise linear, clip((1 + ω_t − ω̄)/T,
0, 1), does not saturate: ρ(t) = P(−1 ≤ ω_t − ω̄ ≤ T − 1). What is decided here:

ω_t − ω̄ has exact moments, but is Gaussian only if W has many directions. The Gaussian form is worst for a
multiple of the identity: off by .038 at an effective rank of 32, .017 at 128; with |tr W| at most a quarter
of the identity's, ¼·√rank·‖W‖_F, by .0197 at 32. It is taken where it is within .02: from rank 128 on, and
from 32 on where tr W is that small. Elsewhere ρ is simulated: given x_T the scores are Gaussian whatever W,
ω_t = (t/T)·x_TᵀWx_T + ‖Wᵀx_T‖·b_t with b a Brownian bridge. So only the last input is drawn, as the query and
key it makes (2e numbers, not d), and ρ averages exact probabilities; profiles of attention draw the bridge
besides. W is taken as its factors: `geometry.spectra.factors`, Σ, γ and scale in them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from isoscope.geometry.spectra import Factors, QkSpectrum

GAUSSIAN_RANK = 128.0  # effective rank from which the closed form is taken, whatever tr W
TRACELESS_RANK = 32.0  # the same where |tr W| ≤ SMALL_TRACE·√rank·‖W‖_F
SMALL_TRACE = 0.25
BLOCK = 128  # walks at a time: 2 MiB for every 2,048 positions, whatever their number
TIED = 9  # decimals of ρ: what differs after them is rounding, and shares a rank
MUCH = 10.0  # a ≪ b where 10·a ≤ b: ρ is then 1 to rounding, ½ within .17, 0 within .04


@dataclass(frozen=True, eq=False)
class Profile:
    """A number for every head and position, [h, T], and its standard error, NaN where nothing was drawn."""

    value: Tensor
    error: Tensor
    way: tuple[str, ...]  # how each head's was had: "closed form" or "simulation"


def position_terms(length: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """The covariance of x_t − x̄ with x_T, t − (T+1)/2, and κ_t, the variance of x_t − x̄, a coordinate."""
    if length < 1:
        raise ValueError(f"length must be at least 1, the query's own position; it is {length}")
    t = torch.arange(1, length + 1, dtype=torch.float64, device=device)
    past = t * (t + 1) / 2 + t * (length - t)
    return t - (length + 1) / 2, t - 2 / length * past + (length + 1) * (2 * length + 1) / (6 * length)


def walk_moments(
    trace: Tensor, trace_square: Tensor, frobenius_square: Tensor, length: int
) -> tuple[Tensor, Tensor]:
    """The mean μ_t and the variance v_t of ω_t − ω̄, exact, each [..., T].

    μ_t = tr W·(t − (T+1)/2), v_t = T·‖W‖_F²·κ_t + tr W²·(t − (T+1)/2)².
    """
    apart, kappa = position_terms(length, frobenius_square.device)
    each = (part.double()[..., None] for part in (trace, trace_square, frobenius_square))
    trace, trace_square, frobenius_square = each
    variance = length * frobenius_square * kappa + trace_square * apart**2
    return trace * apart, variance.clamp_min(0)


def signal_propagation(trace: Tensor, trace_square: Tensor, frobenius_square: Tensor, length: int) -> Tensor:
    """ρ(t) by the Gaussian form, [..., T], ½[erf((T−1−μ_t)/√(2v_t)) + erf((1+μ_t)/√(2v_t))]."""
    mean, variance = walk_moments(trace, trace_square, frobenius_square, length)
    return expected_between(mean, variance.sqrt(), length)


def expected_between(mean: Tensor, deviation: Tensor, length: int) -> Tensor:
    """P(−1 ≤ N(mean, deviation²) ≤ T − 1); without deviation whether the mean lies there; NaN stays NaN."""
    spread = math.sqrt(2) * deviation.where(deviation != 0, 1.0)
    gaussian = (torch.erf((length - 1 - mean) / spread) + torch.erf((1 + mean) / spread)) / 2
    still = ((mean >= -1) & (mean <= length - 1)).double().where(~mean.isnan(), math.nan)
    return gaussian.where(deviation != 0, still)


def _last_inputs(
    query: Tensor, key: Tensor, length: int, walks: int, generator: torch.Generator
) -> Iterator[tuple[Tensor, Tensor]]:
    """x_TᵀWx_T and ‖Wᵀx_T‖ of `walks` last inputs, in blocks [n, 1]; query and key [m, e] are its factors.

    x_T = √T·z makes the query and key √T·zᵀR, R the triangle [≤2e, 2e] of [query, key].
    """
    if walks < 2:
        raise ValueError(f"walks must be at least 2, to have a standard error; it is {walks}")
    triangle = torch.linalg.qr(torch.cat([query, key], dim=1), mode="r").R
    for start in range(0, walks, BLOCK):
        shape = (min(BLOCK, walks - start), len(triangle))
        drawn = math.sqrt(length) * torch.randn(shape, generator=generator, dtype=torch.float64)
        asked, offered = (drawn @ triangle).split(query.shape[1], dim=1)
        norm = (asked @ triangle[:, query.shape[1] :].mT).norm(dim=1, keepdim=True)
        yield (asked * offered).sum(1, keepdim=True), norm


def _averaged(blocks: Iterable[Tensor]) -> tuple[Tensor, Tensor]:
    """The mean over walks and its standard error, each [..., T], of blocks [..., n, T]; all in [0, 1]."""
    n, total, squares = 0, torch.zeros(()), torch.zeros(())
    for block in blocks:
        n, total, squares = n + block.shape[-2], total + block.sum(-2), squares + (block**2).sum(-2)
    mean = total / n
    return mean, ((squares / n - mean**2).clamp_min(0) / (n - 1)).sqrt()


def _heads(parts: Factors) -> Iterator[tuple[Tensor, Tensor]]:
    """The factors of W, [m, e] each, head by head; on the CPU, so that a seed gives one result everywhere."""
    for number, query in enumerate(parts.query):
        yield query.cpu(), parts.key[number // parts.copies].cpu()


def simulate_propagation(
    parts: Factors, length: int, *, walks: int = 4096, seed: int = 0, positions: Tensor | None = None
) -> Profile:
    """ρ(t) of every head from `walks` last inputs, the same for all; at `positions` from 1 to T, or at all.

    The standard error is at most 1/(2√walks), .008 for 4,096; memory does not grow with the walks.
    """
    apart, kappa = (_chosen(each, positions) for each in position_terms(length, torch.device("cpu")))
    bridge = (kappa - apart**2 / length).clamp_min(0).sqrt()  # the deviation of b_t − b̄
    found = []
    for query, key in _heads(parts):
        draws = _last_inputs(query, key, length, walks, torch.Generator().manual_seed(seed))
        found.append(
            _averaged(expected_between(own * apart / length, norm * bridge, length) for own, norm in draws)
        )
    means, errors = (torch.stack(part) for part in zip(*found, strict=True))
    return Profile(means, errors, ("simulation",) * len(found))


def attention_profiles(
    parts: Factors, length: int, *, walks: int = 4096, seed: int = 0
) -> tuple[Profile, Profile]:
    """The mean attention of the last input over keys: by the true softmax, and by the piecewise-linear one.

    Both from the same walks, so that they differ by the softmax alone. The second need not sum to 1.
    """
    each = [_averaged(_weights(query, key, length, walks, seed)) for query, key in _heads(parts)]
    means, errors = (torch.stack(part, dim=1) for part in zip(*each, strict=True))
    way = ("simulation",) * len(each)
    return Profile(means[0], errors[0], way), Profile(means[1], errors[1], way)


def _weights(query: Tensor, key: Tensor, length: int, walks: int, seed: int) -> Iterator[Tensor]:
    """Blocks [2, n, T] of attention over walks: true softmax, piecewise linear."""
    generator = torch.Generator().manual_seed(seed)
    share = torch.arange(1, length + 1, dtype=torch.float64) / length
    for own, norm in _last_inputs(query, key, length, walks, generator):
        walk = torch.randn(len(own), length, generator=generator, dtype=torch.float64).cumsum(1)
        scores = own * share + norm * (walk - share * walk[:, -1:])
        linear = (1 + scores - scores.mean(1, keepdim=True)) / length
        yield torch.stack([scores.softmax(1), linear.clamp(0, 1)])


def _chosen(values: Tensor, positions: Tensor | None) -> Tensor:
    return values if positions is None else values[..., positions.cpu().long() - 1]


def is_gaussian(spectrum: QkSpectrum) -> Tensor:
    """Whether the closed form of ρ is within .02, head by head [h].

    A head of zeros needs no simulation, one of NaN has none: both are said to be.
    """
    rank = spectrum.effective_rank
    small = spectrum.trace.abs() <= SMALL_TRACE * (rank * spectrum.frobenius_square).sqrt()
    return ~(rank < torch.where(small, TRACELESS_RANK, GAUSSIAN_RANK))


def propagation(
    spectrum: QkSpectrum,
    parts: Factors,
    length: int,
    *,
    walks: int = 4096,
    seed: int = 0,
    positions: Tensor | None = None,
) -> Profile:
    """ρ(t) of every head: by the closed form where `is_gaussian` says that it holds, else by simulation.

    With `positions`, numbers from 1 to T, only there: [h, positions].
    """
    moments = (spectrum.trace, spectrum.trace_square, spectrum.frobenius_square)
    found = _chosen(signal_propagation(*moments, length).cpu(), positions)
    error = torch.full_like(found, math.nan)
    few = ~is_gaussian(spectrum).cpu()
    if few.any():
        some = Factors(parts.query[few], parts.keys[few], parts.width)
        drawn = simulate_propagation(some, length, walks=walks, seed=seed, positions=positions)
        found[few], error[few] = drawn.value, drawn.error
    return Profile(found, error, tuple("simulation" if it else "closed form" for it in few.tolist()))


def regime(trace: Tensor, trace_square: Tensor, frobenius_square: Tensor, length: int) -> tuple[str, ...]:
    """Where each head's signal passes as T grows, by θ = tr W and ‖W‖_F: one label a head.

    (ω_t − ω̄)/T is N(θ(u − ½), ‖W‖_F²(u² − u + ⅓) + tr W²(u − ½)²), u = t/T, with deviation σ at both ends;
    a ≪ b where 10·a ≤ b. In this order:
    "vanishing"     ‖W‖_F ≫ √12: ρ ≈ 0 everywhere
    "uniform"       ‖W‖_F ≪ 1/T and |θ|/2 ≪ 1/T: ρ ≈ 1 everywhere
    "uniform_half"  1/T ≪ ‖W‖_F ≪ 1 and |θ|/2 ≪ σ: ρ ≈ ½ everywhere
    "late", "early" |θ|/2 > σ, |θ|/2 ≫ 1/T, |θ| ≤ 2: the half of u > ½ where θ > 0, of u < ½ where θ < 0
    "middle", "middle_early"  the same with |θ| > 2: u within 1/|θ| of ½, on the side of "late" or "early"
    "undecided"     the rest, and what is NaN
    """
    sigmas = (frobenius_square / 3 + trace_square / 4).clamp_min(0).sqrt()
    thetas, norms = trace.reshape(-1).tolist(), frobenius_square.sqrt().reshape(-1).tolist()
    each = zip(thetas, norms, sigmas.reshape(-1).tolist(), strict=True)
    return tuple(_regime(theta, norm, sigma, 1 / length) for theta, norm, sigma in each)


def _regime(theta: float, norm: float, sigma: float, step: float) -> str:
    lean = abs(theta) / 2
    if norm >= MUCH * math.sqrt(12):
        return "vanishing"
    if MUCH * norm <= step and MUCH * lean <= step:
        return "uniform"
    if MUCH * step <= norm <= 1 / MUCH and MUCH * lean <= sigma:
        return "uniform_half"
    if lean > sigma and lean >= MUCH * step:
        side = ("late", "middle") if theta > 0 else ("early", "middle_early")
        return side[lean > 1]
    return "undecided"


def profile_agreement(predicted: Tensor, measured: Tensor) -> Tensor:
    """Spearman's correlation over positions of `predicted` with `measured`, both [h, T], head by head [h].

    NaN where a profile is constant.
    """
    if predicted.shape != measured.shape:
        raise ValueError(
            f"predicted and measured must be [heads, length]; they are {list(predicted.shape)} and "
            f"{list(measured.shape)}"
        )
    ranked = (_ranks(predicted.double().round(decimals=TIED)), _ranks(measured))
    centred = [ranks - ranks.mean(-1, keepdim=True) for ranks in ranked]
    norms = centred[0].norm(dim=-1) * centred[1].norm(dim=-1)
    return (centred[0] * centred[1]).sum(-1) / norms.where(norms > 0, math.nan)


def _ranks(values: Tensor) -> Tensor:
    """The place of every value along the last axis; equal ones share the mean of theirs; NaN where any is."""
    values = values.double().contiguous()
    ordered = values.sort(-1).values
    sides = (torch.searchsorted(ordered, values, right=right) for right in (False, True))
    places = torch.stack(list(sides)).double().mean(0)
    return places.where(~values.isnan().any(-1, keepdim=True), math.nan)
