"""Readings of what W predicts with the data's increments in it, and of how far measured attention agrees."""

from __future__ import annotations

import math
from collections import Counter

import torch
from torch import Tensor

from isoscope.geometry.propagation import Agreement, profile_agreement
from isoscope.measures.base import Reading, undefined
from isoscope.run.weights.looking import Walked
from isoscope.run.weights.predict import Predicted
from isoscope.stats.intervals import FEW, enough, jackknife
from isoscope.stats.profiles import BINS, Profiles

Readings = dict[str, tuple[Reading, ...]]  # by measure: the layer's, then one a head


def walk_readings(walked: Walked) -> Readings:
    """How walk-like the inputs of an attention are."""
    value, pairs = walked.spread.slope, int(walked.spread.pairs[:1].sum())
    if not math.isfinite(value):
        return {"walk_slope": (undefined(pairs, "too few positions in a row count"),)}
    if not enough(walked.sequences):
        return {"walk_slope": (Reading(value, pairs, 0.0, note=FEW),)}
    size = torch.tensor([float(one.pairs[:1].sum()) for one in walked.spreads])
    low, high = jackknife(value, walked.slopes_without(), size)
    return {"walk_slope": (Reading(value, pairs, 0.0, low, high),)}


def spectrum_readings(predicted: Predicted, number: int) -> Readings:
    """The spectrum with Σ in it, from so many increments; the regime is in the note of the trace."""
    spectrum = predicted.spectrum
    counted = Counter(predicted.regimes).most_common()
    traces = _readings(
        spectrum.trace, number, torch.zeros_like(spectrum.trace),
        [f"regime: {label}" for label in predicted.regimes],
        "regimes: " + " · ".join(f"{many} {label}" for label, many in counted),
    )  # fmt: skip
    sizes = _readings(spectrum.frobenius_square.sqrt(), number, predicted.random_frobenius)
    return {"trace_on_data": traces, "frobenius_on_data": sizes}


def agreement_readings(predicted: Predicted, profiles: Profiles) -> Readings:
    """How far the measured profile agrees: with ρ, with attention over walks, and with the regime."""
    measured, n = profiles.mean.cpu(), int(profiles.rows.max())
    signal = profile_agreement(predicted.signal, measured, predicted.random_signal)
    softmax = profile_agreement(predicted.softmax, measured, predicted.random_softmax)
    inside = torch.tensor(
        [
            _density_within(profile, label, float(trace))
            for profile, label, trace in zip(
                measured, predicted.regimes, predicted.spectrum.trace, strict=True
            )
        ],
        dtype=torch.float64,
    )
    return {
        "propagation_agreement": _agreements(signal, n, predicted.way),
        "softmax_agreement": _agreements(softmax, n, ("simulation",) * len(predicted.way)),
        "regime_density": _readings(
            inside, n, torch.ones_like(inside), [f"regime: {label}" for label in predicted.regimes],
            why="no head's regime says where",
        ),
    }  # fmt: skip


def _agreements(found: Agreement, n: int, way: tuple[str, ...]) -> tuple[Reading, ...]:
    """Each head's with how it was predicted and how many random W do as well."""
    notes = [
        f"{how}; p = {float(p):.2f} against random W" if math.isfinite(float(p)) else how
        for how, p in zip(way, found.exceeded, strict=True)
    ]
    return _readings(found.spearman, n, found.null_mean, notes, why="a profile is flat or not known")


def _density_within(profile: Tensor, label: str, trace: float) -> float:
    """The mean density of a profile [bins] over the stretch that a regime names; NaN where it names none."""
    reach = 1 / abs(trace) if trace else math.inf
    ends = {
        "late": (0.5, 1.0),
        "early": (0.0, 0.5),
        "middle": (0.5, 0.5 + reach),
        "middle_early": (0.5 - reach, 0.5),
    }.get(label)
    if ends is None:
        return math.nan
    edges = torch.arange(BINS + 1, dtype=torch.float64) / BINS
    shared = (edges[1:].clamp_max(ends[1]) - edges[:-1].clamp_min(ends[0])).clamp_min(0)
    return float((profile * shared).sum() / shared.sum())


def _readings(
    value: Tensor,
    n: int,
    null: Tensor,
    notes: list[str] | None = None,
    note: str = "",
    why: str = "not finite",
) -> tuple[Reading, ...]:
    """The layer's reading, the mean over the heads that have one, then each head's."""
    told = notes or [""] * len(value)
    known = value.isfinite()
    heads = [
        Reading(float(one), n, float(chance), note=said)
        if bool(there)
        else undefined(n, "; ".join(filter(None, (said, why))))
        for one, chance, said, there in zip(value, null, told, known, strict=True)
    ]
    if not bool(known.any()):
        return undefined(n, why), *heads
    return Reading(float(value[known].mean()), n, float(null[known].mean()), note=note), *heads
