"""W that are made up, and what walks at random say of them: ρ(t) in closed form and by simulation.

W = (θ/d)·I + s·G/d, G Gaussian: its trace is θ and ‖W‖_F² ≈ θ²/d + s². The n of a row is its T.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from isoscope.geometry import propagation
from isoscope.geometry.spectra import Factors, QkSpectrum, factors
from isoscope.kernels.spectra import qk_spectrum
from isoscope.results.points import Points
from isoscope.results.reading import Reading
from isoscope.results.row import Row

KIND = "walk"
PLACES = 64  # positions of a walk at which ρ is told
GROWING = (16, 64, 256, 1024)  # T
RANKS = tuple(2**power for power in range(16))  # of W of low rank, up to its width
SPREADS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
TRACED, TRACELESS = "multiples of the identity", "without trace"
"""W of low rank: the worst for the closed form, and those that are like heads before training."""
WALKED, WALKED_SIZES = 256, (0.1, 1.0, 10.0)  # T and ‖W‖_F of those


@dataclass(frozen=True)
class Made:
    """A regime and a W that is in it for long sequences: θ and the spread, which may shrink with T."""

    regime: str
    trace: float
    spread: float
    shrinks: bool = False

    def spread_at(self, length: int) -> float:
        """The spread of a W for so many positions."""
        return self.spread / length if self.shrinks else self.spread


MADE = (
    Made("late", 1.0, 0.1), Made("early", -1.0, 0.1), Made("middle", 6.0, 0.1),
    Made("middle_early", -6.0, 0.1), Made("uniform", 0.0, 0.05, shrinks=True),
    Made("uniform_half", 0.0, 0.05), Made("vanishing", 0.0, 60.0)
)  # fmt: skip
LOCALISED = tuple(made.regime for made in MADE if made.trace)


@dataclass(frozen=True)
class Asked:
    """What one process is asked for: the width d of W, how many walks, and the seed of both."""

    width: int
    walks: int
    seed: int


def made_of(trace: float, spread: float, width: int, seed: int) -> Factors:
    """W as factors."""
    random = torch.Generator().manual_seed(seed)
    noise = torch.randn(width, width, dtype=torch.float64, generator=random) * spread / width
    whole = torch.eye(width, dtype=torch.float64)
    return factors(whole * trace / width + noise, whole, scale=1.0)


def few_of(rank: int, norm: float, width: int, seed: int, *, traced: bool) -> Factors:
    """W of this rank and ‖W‖_F: a multiple of a projection, or a product of Gaussian factors."""
    random = torch.Generator().manual_seed(seed)
    made = torch.randn(2, width, rank, dtype=torch.float64, generator=random)
    query, key = torch.linalg.qr(made).Q if traced else made
    key = query if traced else key
    size = ((query.mT @ query) * (key.mT @ key)).sum().sqrt()
    return factors(query, key, scale=norm / float(size))


def walked(asked: Asked) -> tuple[list[Row], list[Points]]:
    """All rows of one seed, and of the first seed the profiles."""
    rows: list[Row] = []
    points: list[Points] = []
    for made in MADE:
        for length in GROWING:
            new, drawn = _grown(made, length, asked)
            rows += new
            points += drawn if asked.seed == 0 else []
    for spread in SPREADS:
        rows += _spread(spread, asked)
    for rank in (rank for rank in RANKS if rank <= asked.width):
        rows += [row for name in (TRACED, TRACELESS) for row in _few(rank, name, asked)]
    return rows, points


def _grown(made: Made, length: int, asked: Asked) -> tuple[list[Row], list[Points]]:
    parts = made_of(made.trace, made.spread_at(length), asked.width, asked.seed)
    both = _both(parts, length, asked)
    inside = within(made, both.places / length)
    found = {
        "propagation_inside": float(both.simulated[inside].mean()),
        "propagation_error": both.error,
        "regime_named": float(propagation.regime(*_moments(both.spectrum), length)[0] == made.regime),
    }
    if made.regime in LOCALISED:
        found["propagation_outside"] = float(both.simulated[~inside].mean())
        true, linear = propagation.attention_profiles(parts, length, walks=asked.walks, seed=asked.seed)
        found["softmax_likeness"] = float(propagation.profile_agreement(linear.value, true.value))
    x = (both.places / length).tolist()
    points = [
        Points("profile", KIND, length, None, f"{made.regime}, {how}", x, values.tolist())
        for how, values in (("simulated", both.simulated), ("closed form", both.closed))
    ]
    return _rows(made.regime, asked, length, found), points


def _spread(spread: float, asked: Asked) -> list[Row]:
    """How far ρ differs between the halves where θ = 1, and how wide the spectrum is."""
    length = GROWING[-1]
    both = _both(made_of(1.0, spread, asked.width, asked.seed), length, asked)
    late = both.places > length / 2
    found = {
        "localisation": float(both.simulated[late].mean() - both.simulated[~late].mean()),
        "spectrum_variance": float(both.spectrum.variance),
        "frobenius": float(both.spectrum.frobenius_square.sqrt()),
    }
    return _rows(f"spread {spread:g}", asked, length, found)


def _few(rank: int, name: str, asked: Asked) -> list[Row]:
    """The largest error of the closed form over sizes of W, and whether it would be taken."""
    made = partial(few_of, rank, width=asked.width, seed=asked.seed, traced=name == TRACED)
    each = [_both(made(norm=norm), WALKED, asked) for norm in WALKED_SIZES]
    found = {
        "propagation_error": max(both.error for both in each),
        "query_key_rank": float(each[0].spectrum.effective_rank),
        "closed_form": float(propagation.is_gaussian(each[0].spectrum)),
    }
    return _rows(f"{name}, rank {rank}", asked, WALKED, found)


@dataclass(frozen=True, eq=False)
class _Both:
    """ρ at some places by both ways."""

    places: Tensor
    spectrum: QkSpectrum
    simulated: Tensor
    closed: Tensor

    @property
    def error(self) -> float:
        """The largest difference."""
        return float((self.simulated - self.closed).abs().max())


def _both(parts: Factors, length: int, asked: Asked) -> _Both:
    places = torch.linspace(1, length, min(PLACES, length)).round().long()
    drawn = propagation.simulate_propagation(
        parts, length, walks=asked.walks, seed=asked.seed, positions=places
    )
    spectrum = qk_spectrum(parts.query, parts.key, scale=1.0)
    closed = propagation.signal_propagation(*_moments(spectrum), length)[0, places - 1]
    return _Both(places, spectrum, drawn.value[0], closed)


def _moments(spectrum: QkSpectrum) -> tuple[Tensor, Tensor, Tensor]:
    return spectrum.trace, spectrum.trace_square, spectrum.frobenius_square


def within(made: Made, u: Tensor) -> Tensor:
    """Which places u = t/T [n] are those from which signal should pass, by the regime; all where even."""
    if made.regime not in LOCALISED:
        return torch.ones_like(u, dtype=torch.bool)
    reach = min(0.5, 1 / abs(made.trace))
    low, high = (0.5, 0.5 + reach) if made.trace > 0 else (0.5 - reach, 0.5)
    return (u > low) & (u <= high)


def _rows(model: str, asked: Asked, length: int, found: Mapping[str, float]) -> list[Row]:
    at = ("", model, f"seed {asked.seed}", None, KIND, None, None)
    rows = [Row.at(*at, measure, Reading(value, length)) for measure, value in found.items()]
    return [replace(row, arm=model, seed=asked.seed) for row in rows]
