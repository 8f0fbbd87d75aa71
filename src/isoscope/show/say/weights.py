"""The sentences on weights: where heads would look, how the vocabulary lies, what the final norm does.

Regimes are what a theory says of inputs that walk at random, so every sentence on them says so.
"""

from __future__ import annotations

import math
from collections import Counter

from isoscope.formatting import capital, listed, plain, short, spread, two
from isoscope.results.paired import paired
from isoscope.show.readings import SiteReading, numbered, of
from isoscope.show.regimes import LOCALISED, REGIMES, UNDECIDED, regime_of
from isoscope.show.say.shapes import STRONG, WEAK, graded
from isoscope.sites import CENTRED, WITHOUT_TOP, of_form

LEAST = 0.01  # a mean cosine of a vocabulary nearer to that of random directions is not called anisotropic
WALK = 0.5  # inputs whose spread grows slower than s^½ are nearer to standing still than to a random walk
CHANCE = 0.05  # a head's own predictions agree better than those of other heads where p is at most this
ALONG = 0.3  # a cosine nearer to 0 is not in the headline: in 100 dimensions chance alone reaches .2

SCALE_OF_WEIGHTS = (
    "The regimes are those of Bao et al. 2024, for inputs that walk at random and sequences that grow long; "
    "a head is undecided where their inequalities hold for none. In the pale areas tr W² decides. "
    "A vocabulary is called anisotropic where its mean cosine exceeds that of random directions by "
    f"{LEAST}, weakly so under {WEAK} and strongly above {STRONG}."
)

_EVENLY = {
    "uniform": "all signal pass, wherever it is",
    "uniform_half": "half of the signal pass, wherever it is",
    "vanishing": "no signal pass",
}
"""What heads would let pass whose regime names no place."""

_VOCABULARIES = {"input_vocabulary": "input vocabulary", "output_vocabulary": "output vocabulary"}


def in_brief(found: list[SiteReading]) -> str:
    """The sentences of the headline: heads, vocabularies and the norm, each where it was measured."""
    return " ".join(filter(None, (_placed(found), _vocabularies(found), _bias(found))))


def _placed(found: list[SiteReading]) -> str:
    """Where heads would look; that the inputs do not walk at random comes first."""
    heads = _self_attention(found, "trace")
    if not heads:
        return ""
    slopes, counts = of(found, "walk_slope"), Counter(map(regime_of, heads))
    localised = sum(counts[name] for name in LOCALISED)
    places = [_place(name, heads, counts[name]) for name in LOCALISED if counts[name]]
    text = f"the weights decide where {localised} of {len(heads)} heads would look"
    text += f": {listed(places)}" if places else ""
    evenly = [f"{counts[name]} would let {what}" for name, what in _EVENLY.items() if counts[name]]
    text += f"; {listed(evenly)}" if evenly else ""
    if slopes and all(map(_stands, slopes)):
        walk = f"walk slope {_span(slopes)}; a walk has 1"
        premise = f"On this data the inputs of attention do not walk at random ({walk}), so the theory of"
        return f"{premise} where heads look does not apply. For inputs that do, {text}."
    return f"For inputs that walk at random, {text}."


def _self_attention(found: list[SiteReading], measure: str) -> list[SiteReading]:
    return [r for r in found if (r.measure, r.kind) == (measure, "query_key") and r.head is not None]


def _place(name: str, heads: list[SiteReading], number: int) -> str:
    """A regime in words: a half, or within 1/|tr W| of the middle, as a share of the length."""
    if name not in ("middle", "middle_early"):
        return f"in the {REGIMES[name].label} ({number})"
    reach = spread([100 / abs(r.value) for r in heads if regime_of(r) == name], lambda x: f"{x:.0f}")
    side = "past" if name == "middle" else "before"
    return f"within {reach} % of the length {side} the middle ({number})"


def _stands(slope: SiteReading) -> bool:
    """Whether inputs are nearer to standing still than to a walk: for the whole interval, if there is one."""
    return slope.below(WALK) if slope.bounded else slope.value < WALK


def localisation(found: list[SiteReading]) -> list[str]:
    """How many heads the theory leaves open, whether its premise holds, and whether attention follows it."""
    out = []
    heads = _self_attention(found, "trace")
    if heads:
        undecided = sum(regime_of(r) == UNDECIDED for r in heads)
        out.append(f"The regime of {undecided} of {len(heads)} heads is undecided.")
    if crossed := sum(r.measure == "trace" and r.head is not None for r in found) - len(heads):
        out.append(f"The theory is of self-attention; {crossed} heads of cross-attention are not counted.")
    if slopes := of(found, "walk_slope"):
        still = [r for r in slopes if _stands(r)]
        so = f", so the theory’s premise does not hold in {numbered(still)}" if still else ""
        text = "The squared distance of two inputs grows with their distance s as s to the power "
        out.append(f"{text}{_span(slopes)}; a random walk has 1{so}.")
    return [*out, *_agreements(found)]


def _agreements(found: list[SiteReading]) -> list[str]:
    """How far attention ranks positions as predicted, and whether better than other heads predict."""
    known = [r for r in found if r.measure == "propagation_agreement" and r.known]
    heads = [r for r in known if r.head is not None]
    if not heads:
        return []
    mean = plain(sum(r.value for r in heads) / len(heads))
    text = f"Attention ranks positions as a head’s own weights predict with Spearman’s r = {mean} (mean over "
    text += f"{len(heads)} heads)"
    tested = [r for r in known if r.head is None and math.isfinite(r.p)]
    if not tested:
        return [f"{text}."]
    counts = [sum(h.layer == r.layer for h in heads) for r in tested]
    control = sum(n * r.null for n, r in zip(counts, tested, strict=True)) / sum(counts)
    p = fisher([r.p for r in tested])
    verdict = "better" if p <= CHANCE else "not better"
    chance = f"p = {short(p, 2)}" if p >= 0.001 else "p < 0.001"
    return [f"{text}, {verdict} than other heads and mirror images predict ({plain(control)}; {chance})."]


def fisher(chances: list[float]) -> float:
    """The p of several independent ones together, P(χ² ≥ −2Σ log p) with two degrees of freedom each."""
    half = -sum(math.log(p) for p in chances) or 1e-300
    terms = (k * math.log(half) - half - math.lgamma(k + 1) for k in range(len(chances)))
    return min(1.0, sum(map(math.exp, terms)))


def vocabulary(found: list[SiteReading]) -> list[str]:
    """Each matrix as it is, centred, and without its top directions."""
    out = []
    for kind, name in _VOCABULARIES.items():
        if cosine := at(found, "mean_cosine", kind):
            forms = {"centred": CENTRED, "without its top directions": WITHOUT_TOP}
            rest = {how: at(found, "mean_cosine", of_form(kind, form)) for how, form in forms.items()}
            left = "".join(f", {how} {plain(r.value)}" for how, r in rest.items() if r)
            numbers = f"{plain(cosine.value)}{left}; random directions have {plain(cosine.chance)}"
            out.append(f"The {name} is {grade(cosine)}: mean cosine {numbers}.")
    return out


def _vocabularies(found: list[SiteReading]) -> str:
    there = [(name, r) for kind, name in _VOCABULARIES.items() if (r := at(found, "mean_cosine", kind))]
    said = [f"the {name} is {grade(r)} (mean cosine {plain(r.value)})" for name, r in there]
    return f"{capital(listed(said))}; random directions have {plain(there[0][1].chance)}." if there else ""


def grade(reading: SiteReading) -> str:
    """The word that the mean cosine of a vocabulary earns."""
    above = reading.value - reading.chance
    return "not anisotropic" if above < LEAST else graded(above)


def stages(found: list[SiteReading]) -> list[str]:
    """What the stages of the norm make of the cloud, where there is data."""
    out = []
    for measure, name in (("relative_drift", "relative drift"), ("mean_cosine_between", "mean cosine")):
        before, scaled, after = (at(found, measure, f"norm_{k}") for k in ("before", "scaled", "output"))
        if before and after:
            middle = f", {plain(scaled.value)} after × γ" if scaled else ""
            text = f"The {name} is {plain(before.value)} before the norm{middle} and {plain(after.value)}"
            out.append(f"{text} after{'' if paired(before, after).excludes(0) else ' (indistinguishable)'}.")
    return out


def _bias(found: list[SiteReading]) -> str:
    """What β does, where the intervals show it, else how it lies to the vocabulary, where that is clear."""
    scaled, after = (at(found, "relative_drift", f"norm_{stage}") for stage in ("scaled", "output"))
    if scaled and after and paired(scaled, after).excludes(0):
        old, new = two(scaled.value, after.value)
        return f"The final norm’s β takes the relative drift from {old} to {new}."
    along = at(found, "bias_vocabulary_cosine", "norm")
    if along and abs(along.value) >= ALONG:
        side = "along" if along.value > 0 else "against"
        return f"The final norm’s β points {side} the mean of the vocabulary (cosine {plain(along.value)})."
    return ""


def at(found: list[SiteReading], measure: str, kind: str) -> SiteReading | None:
    """The reading of this measure at this kind of site, no head; None where there is no value."""
    return next((r for r in of(found, measure, kind) if r.known), None)


def _span(found: list[SiteReading]) -> str:
    return spread([r.value for r in found], lambda value: short(value, 2))
