"""Readings of what W predicts with the data's increments in it, and of how far measured attention agrees.

Decided here: a prediction is held against those of the other heads of its layer and their mirror images (t
reversed), which share the data, the layer's taste for early or late keys and the smoothness of any ρ; all
that tells them apart is whose W it was. Random W would not do: its ρ is flat, and any slope beats it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import torch
from torch import Tensor

from isoscope.geometry.propagation import TIED, profile_agreement
from isoscope.measures.base import undefined
from isoscope.measures.query_key import counted
from isoscope.results.reading import Reading
from isoscope.run.weigh.looking import Walked
from isoscope.run.weigh.predict import Predicted
from isoscope.stats.intervals import enough, few, jackknife
from isoscope.stats.profiles import BINS, Profiles

Readings = dict[str, tuple[Reading, ...]]  # by measure: the layer's, then one a head

EXACT = 7  # heads whose every order is counted, 5,040; of more, so many orders are drawn
ORDERS = 9_999
LOCALISED = ("late", "early", "middle", "middle_early")  # regimes that name a stretch
SAME = 1e-9  # sums that differ by less are equal: profiles that rank alike give ties


@dataclass(frozen=True, eq=False)
class Held:
    """Predictions held against those of other heads, [h] each; NaN where a profile is flat or unknown."""

    own: Tensor  # Spearman of the measured profile with the head's own prediction
    others: Tensor  # its mean with the predictions of the other heads; NaN without others
    mirrored: Tensor  # its mean with their mirror images
    better: Tensor  # how many of both agree at least as well
    against: int  # how many there are
    chance: float  # how often heads given each other's predictions exceed their controls by as much

    @property
    def control(self) -> Tensor:
        """The mean with the predictions of other heads and their mirror images."""
        return (self.others + self.mirrored) / 2


def held(predicted: Tensor, measured: Tensor, *, seed: int = 0) -> Held:
    """Hold predicted profiles against measured ones, both [h, bins], of the heads of one layer.

    The chance is that of mean(own) − mean(control) over orders of the predictions: all of them, or `ORDERS`
    drawn ones. With k heads it is at least 1/k!, and NaN where k < 2.
    """
    measured = measured.double().round(decimals=TIED)  # stretches of one key are equal but for rounding
    straight, mirrored = (_crossed(some, measured) for some in (predicted, predicted.flip(1)))
    own = straight.diagonal().clone()
    others, mirrors, better = (torch.full_like(own, math.nan) for _ in range(3))
    at = own.isfinite().nonzero().flatten()
    k = len(at)
    if k < 2:
        return Held(own, others, mirrors, better, 0, math.nan)
    both = torch.stack([straight, mirrored])[:, at][:, :, at]
    rest = (both.sum(2, keepdim=True) - both) / (k - 1)  # of head i, if the prediction of j were its own
    others[at], mirrors[at] = rest.diagonal(dim1=1, dim2=2)
    beside = both.masked_fill(torch.eye(k, dtype=torch.bool), -math.inf)
    better[at] = (beside >= own[at][:, None] - SAME).sum((0, 2)).double()
    return Held(own, others, mirrors, better, 2 * (k - 1), _chance(both[0] - rest.mean(0), seed))


def _crossed(predicted: Tensor, measured: Tensor) -> Tensor:
    """Spearman of the measured profile of head i with the prediction of head j, [h, h]."""
    heads, bins = measured.shape
    every = (
        some.expand(heads, heads, bins).reshape(-1, bins) for some in (predicted[None], measured[:, None])
    )
    return profile_agreement(*every).view(heads, heads)


def _chance(excess: Tensor, seed: int) -> float:
    """The share of orders π, the given one among them, whose Σ excess[i, π(i)] is as large, [k, k]."""
    k = len(excess)
    if k <= EXACT:
        orders = torch.tensor(list(permutations(range(k))))
    else:
        drawn = torch.rand(ORDERS, k, generator=torch.Generator().manual_seed(seed)).argsort(1)
        orders = torch.cat([torch.arange(k)[None], drawn])
    sums = excess[torch.arange(k), orders].sum(1)
    return float((sums >= excess.diagonal().sum() - SAME).double().mean())


def walk_readings(walked: Walked) -> Readings:
    """How walk-like the inputs of an attention are."""
    value, pairs = walked.spread.slope, int(walked.spread.pairs[:1].sum())
    if not math.isfinite(value):
        return {"walk_slope": (undefined(pairs, "too few positions in a row count"),)}
    if not enough(walked.sequences, walked.joint):
        return {"walk_slope": (Reading(value, pairs, 0.0, note=few(walked.joint)),)}
    size = torch.tensor([float(one.pairs[:1].sum()) for one in walked.spreads])
    low, high = jackknife(value, walked.slopes_without(), size)
    return {"walk_slope": (Reading(value, pairs, 0.0, low, high),)}


def spectrum_readings(predicted: Predicted, number: int) -> Readings:
    """The spectrum with Σ in it, from so many increments; the regime is in the note of the trace."""
    spectrum = predicted.spectrum
    counts = counted(predicted.regimes)
    traces = _readings(
        spectrum.trace, number, torch.zeros_like(spectrum.trace),
        [f"regime: {label}" for label in predicted.regimes], "regimes: " + counts,
        tags=[counts, *predicted.regimes],
    )  # fmt: skip
    sizes = _readings(spectrum.frobenius_square.sqrt(), number, predicted.random_frobenius)
    return {"trace_on_data": traces, "frobenius_on_data": sizes}


def agreement_readings(predicted: Predicted, profiles: Profiles) -> Readings:
    """How far the measured profile agrees: with ρ, with attention over walks, and with the regime."""
    measured, n = profiles.mean.cpu(), int(profiles.rows.max())
    each = zip(measured, predicted.regimes, predicted.spectrum.trace.tolist(), strict=True)
    inside = torch.tensor([_density_within(*one) for one in each], dtype=torch.float64)
    return {
        "propagation_agreement": _agreements(held(predicted.signal, measured), n, predicted.way),
        "softmax_agreement": _agreements(held(predicted.softmax, measured), n, None),
        "regime_density": _densities(inside, n, predicted.regimes),
    }


def _agreements(found: Held, n: int, way: tuple[str, ...] | None) -> tuple[Reading, ...]:
    """Each head's with how it was predicted and how many others do as well; the layer's with its p."""
    ways = way or ("",) * len(found.own)
    others = [
        f"{int(many)} of {found.against} others do as well" if math.isfinite(many) else ""
        for many in found.better.tolist()
    ]
    notes = ["; ".join(filter(None, both)) for both in zip(ways, others, strict=True)]
    note = "no other head to hold it against"
    if found.against:
        beside, mirrored = (float(some.nanmean()) for some in (found.others, found.mirrored))
        note = f"other heads {beside:.3f}, mirrored {mirrored:.3f}; p = {found.chance:.2g}"
    layer, *heads = _readings(found.own, n, found.control, notes, note, "a profile is flat or not known")
    return replace(layer, p=found.chance if layer.known else math.nan), *heads


def _densities(inside: Tensor, n: int, regimes: tuple[str, ...]) -> tuple[Reading, ...]:
    """Attention where a regime says; of a head whose regime says nothing there is nothing to remark."""
    notes = [f"regime: {label}" for label in regimes]
    layer, *heads = _readings(inside, n, torch.ones_like(inside), notes, tags=["", *regimes])
    silent = [label not in LOCALISED for label in regimes]
    heads = [replace(one, note="", tag="") if mute else one for one, mute in zip(heads, silent, strict=True)]
    return replace(layer, note="") if all(silent) else layer, *heads


def _density_within(profile: Tensor, label: str, trace: float) -> float:
    """The mean density of a profile [bins] over the stretch that a regime names; NaN where it names none."""
    if label not in LOCALISED:
        return math.nan
    reach = (1 / abs(trace) if trace else math.inf) if label in ("middle", "middle_early") else 0.5
    low, high = (0.5, 0.5 + reach) if label in ("late", "middle") else (0.5 - reach, 0.5)
    edges = torch.arange(BINS + 1, dtype=torch.float64) / BINS
    shared = (edges[1:].clamp_max(high) - edges[:-1].clamp_min(low)).clamp_min(0)
    return float((profile * shared).sum() / shared.sum())


def _readings(
    value: Tensor,
    n: int,
    null: Tensor,
    notes: list[str] | None = None,
    note: str = "",
    why: str = "not finite",
    tags: Sequence[str] | None = None,
) -> tuple[Reading, ...]:
    """The layer's reading, the mean over the heads that have one, then each head's; `tags` in that order."""
    told = notes or [""] * len(value)
    whole, *each = tags or [""] * (1 + len(value))
    known = value.isfinite()
    heads = [
        Reading(float(one), n, float(chance), note=said, tag=tag)
        if bool(there)
        else replace(undefined(n, "; ".join(filter(None, (said, why)))), tag=tag)
        for one, chance, said, tag, there in zip(value, null, told, each, known, strict=True)
    ]
    if not bool(known.any()):
        return undefined(n, why), *heads
    mean, expected = float(value[known].mean()), float(null[known].mean())
    return Reading(mean, n, expected, note=note, tag=whole), *heads
