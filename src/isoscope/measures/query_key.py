"""Readings of W = scale·W_Q W_Kᵀ, head by head: where attention can look before any data is seen.

The layer's reading is the mean over its heads; the nulls are those of `measures.null_heads`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from isoscope.geometry import spectra as definition
from isoscope.geometry.propagation import is_gaussian
from isoscope.measures.base import Measure, undefined
from isoscope.measures.null_heads import drawn, random_moments
from isoscope.results.reading import Reading
from isoscope.stats.weights import HeadWeights

NOT_FINITE = "weights that are NaN or Inf"
_SOURCE = "Bao, Hataya & Karakida 2024"
_NONE = "none: weights are not a sample"
_DRAWN = "mean over draws of random W_Q and W_K with the same Frobenius norms"
_TURNED = "Rotary position and QK-norm come after the projections and are not in W."


def _nothing(record: HeadWeights) -> Tensor:
    return torch.zeros_like(record.query_size)


def _nowhere(record: HeadWeights) -> Tensor:
    return torch.full_like(record.query_size, math.nan)


def _reader(
    value: Callable[[HeadWeights], Tensor],
    null: Callable[[HeadWeights], Tensor],
    notes: Callable[[HeadWeights], tuple[str, ...]] = lambda record: (),
    tags: Callable[[HeadWeights], tuple[str, ...]] = lambda record: (),
) -> Callable[[HeadWeights], tuple[Reading, ...]]:
    """Readings of the layer, then of each head; `notes` and `tags`, if any, are theirs in that order."""

    def read(record: HeadWeights) -> tuple[Reading, ...]:
        values, nulls = value(record), null(record)
        told, classes = (each(record) or ("",) * (len(values) + 1) for each in (notes, tags))
        heads = [
            Reading(float(each), int(width), float(chance), note=note, tag=tag)
            if math.isfinite(each)
            else undefined(int(width), _lacking(record, head))
            for head, (each, chance, width, note, tag) in enumerate(
                zip(values, nulls, record.width, told[1:], classes[1:], strict=True)
            )
        ]
        known = values.isfinite()
        if not known.any():
            return undefined(len(values), _lacking(record, 0)), *heads
        lost = int((~known).sum())
        missing = f"{lost} of {len(values)} heads left out: {_lacking(record, int((~known).int().argmax()))}"
        note = "; ".join(filter(None, [told[0], missing if lost else ""]))
        mean, chance = float(values[known].mean()), float(nulls[known].mean())
        return Reading(mean, int(known.sum()), chance, note=note, tag=classes[0]), *heads

    return read


def _lacking(record: HeadWeights, head: int) -> str:
    return NOT_FINITE if record.spectrum.trace[head].isnan() else "W is zero"


def _known(record: HeadWeights) -> list[bool]:
    """Whether each head has numbers."""
    return (~record.spectrum.trace.isnan()).tolist()


def counted(regimes: Iterable[str]) -> str:
    """How many heads are in each regime, the most frequent first: "3 late · 1 early"."""
    return " · ".join(f"{count} {name}" for name, count in Counter(regimes).most_common())


def _regimes(record: HeadWeights) -> tuple[str, ...]:
    """The regimes of the layer's heads, counted, then the regime of each head."""
    if not record.regimes:
        return ()
    known = (name for name, head in zip(record.regimes, _known(record), strict=True) if head)
    return counted(known), *record.regimes


def _regime_notes(record: HeadWeights) -> tuple[str, ...]:
    names = _regimes(record)
    return tuple(f"regime{'s' if at == 0 else ''}: {name}" for at, name in enumerate(names))


def _ways(record: HeadWeights) -> tuple[str, ...]:
    """How ρ(t) is had."""
    if not record.regimes:
        return ()
    closed = is_gaussian(record.spectrum).tolist()
    told = ("ρ(t) in closed form" if each else "ρ(t) simulated" for each in closed)
    return f"ρ(t) simulated for {closed.count(False)} of {sum(_known(record))} heads", *told


def _defined(name: str) -> Callable[..., Tensor]:
    """The field of this name, from the explicit d×d matrix."""

    def found(wq: Tensor, wk: Tensor, **given: Any) -> Tensor:
        return getattr(definition.qk_spectrum(wq, wk, **given), name)

    return found


def _defined_frobenius(wq: Tensor, wk: Tensor, **given: Any) -> Tensor:
    return torch.linalg.matrix_norm(definition.qk_matrix(wq, wk, **given))


_measure = partial(
    Measure,
    family="query_key",
    stats=(HeadWeights,),
    interval=_NONE,
    source=_SOURCE,
    bounds=(0.0, math.inf),
    unchanged_by=frozenset({"rotation"}),
    at="query_key",
)

MEASURES = (
    _measure(
        name="trace",
        read=_reader(lambda record: record.spectrum.trace, _nothing, _regime_notes, _regimes),
        definition=_defined("trace"),
        title="trace of W",
        formula="tr W, W = scale·diag(γ) W_Q W_Kᵀ diag(γ)",
        says="Where the head looks if inputs walk at random: above 0 at what came late, below 0 at what came "
        "early, near 0 nowhere in particular. Its note says which regime the head is in.",
        misleads=f"Inputs of a trained model need not walk at random; the data says how far. {_TURNED}",
        null="0, as for random W_Q and W_K",
        bounds=(-math.inf, math.inf),
    ),
    _measure(
        name="trace_square",
        read=_reader(
            lambda record: record.spectrum.trace_square,
            lambda record: random_moments(record)[1],
        ),
        definition=_defined("trace_square"),
        title="trace of W²",
        formula="tr W² = Σλ²",
        says="How much W stretches more than it turns: with tr W and ‖W‖_F it gives ρ(t).",
        misleads=f"No size: it is negative where W turns more than it stretches. {_TURNED}",
        null="‖scale·W_Q‖²‖W_K‖²/(d·e), as for random W_Q and W_K",
        bounds=(-math.inf, math.inf),
    ),
    _measure(
        name="frobenius",
        read=_reader(
            lambda record: record.spectrum.frobenius_square.sqrt(),
            lambda record: random_moments(record)[2].sqrt(),
        ),
        definition=_defined_frobenius,
        title="size of W",
        formula="‖W‖_F",
        says="The deviation of scores over normalised inputs: far below 1/T attention is uniform, far above "
        "√12 signal vanishes.",
        misleads=f"Inputs are not white: the same W on real inputs has another size. {_TURNED}",
        null="‖scale·W_Q‖‖W_K‖/√e, as for random W_Q and W_K",
    ),
    _measure(
        name="spectrum_mean",
        read=_reader(lambda record: record.spectrum.mean, _nothing),
        definition=_defined("mean"),
        title="mean eigenvalue of W",
        formula="λ̄ = tr W/d",
        says="The trace, a dimension.",
        misleads="A head has rank e, far below d: nearly all of the d eigenvalues are zero.",
        null="0, as for random W_Q and W_K",
        bounds=(-math.inf, math.inf),
    ),
    _measure(
        name="spectrum_variance",
        read=_reader(lambda record: record.spectrum.variance, drawn("variance", 2)),
        definition=_defined("variance"),
        title="variance of the eigenvalues of W",
        formula="(1/d) Σ|λ − λ̄|², zeros included",
        says="How far the spectrum spreads: attention localises where it is small beside the mean.",
        misleads="tr W²/d − λ̄² is often given for it and can be negative; this is of moduli.",
        null=_DRAWN,
    ),
    _measure(
        name="spectrum_variance_inside",
        read=_reader(lambda record: record.spectrum.variance_inside, drawn("variance_inside", 2)),
        definition=_defined("variance_inside"),
        title="variance of the eigenvalues inside the rank",
        formula="(1/e) Σ|λ − λ̄ₑ|² over the e eigenvalues inside the rank",
        says="The spread without the zeros that a head of rank e must have.",
        misleads="Not the variance of the theory, which takes all d.",
        null=_DRAWN,
        source="isoscope",
    ),
    _measure(
        name="symmetric_share",
        read=_reader(
            lambda record: record.spectrum.symmetric_share,
            lambda record: (1 + 1 / record.width.double()) / 2,
        ),
        definition=_defined("symmetric_share"),
        title="symmetric share of W",
        formula="‖(W + Wᵀ)/2‖² / ‖W‖²",
        says="1 where a gives b the score that b gives a, 0 where it gives the opposite.",
        misleads=f"About ½ for a random head, not 0. {_TURNED}",
        null="(1 + 1/d)/2, as for random W_Q and W_K",
        source="isoscope",
        bounds=(0.0, 1.0),
        unchanged_by=frozenset({"rotation", "scale"}),
    ),
    _measure(
        name="spectral_norm",
        read=_reader(lambda record: record.spectrum.spectral_norm, drawn("spectral_norm", 1)),
        definition=_defined("spectral_norm"),
        title="spectral norm of W",
        formula="‖W‖₂, the largest singular value",
        says="The largest score that two normalised inputs of length 1 can have: where it grows in training, "
        "entropy can collapse.",
        misleads=f"One direction decides it, which inputs may never take. {_TURNED}",
        null=_DRAWN,
        source="Zhai et al. 2023",
    ),
    _measure(
        name="query_key_rank",
        read=_reader(lambda record: record.spectrum.effective_rank, drawn("effective_rank", 0), _ways),
        definition=_defined("effective_rank"),
        title="effective rank of W",
        formula="‖W‖_F⁴ / tr((WWᵀ)²)",
        says="How many directions W has: where it is small, ρ(t) is simulated and not taken in closed form.",
        misleads="Large singular values count for more than in the entropy's effective rank.",
        null=_DRAWN,
        source="isoscope",
        bounds=(1.0, math.inf),
        unchanged_by=frozenset({"rotation", "scale"}),
        ranklike=True,
    ),
    _measure(
        name="key_bias_norm",
        read=_reader(lambda record: record.key_bias_norm, _nowhere),
        definition=definition.key_bias_norm,
        title="what the query's bias adds",
        formula="‖scale·γ⊙W_K q₀‖, q₀ = W_Qᵀβ + b_Q",
        says="The deviation of the part of a score that is the same for every query: beside ‖W‖_F it says "
        "how much of attention the biases alone decide.",
        misleads="The keys' own bias is not in it: that is the same for every key, and cancels.",
        null="none: there is no such bias in a random head",
        source="isoscope",
    ),
)
