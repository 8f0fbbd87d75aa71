"""The sentences on weights: where heads would look, how the vocabulary lies, what the final norm does.

Each takes the readings of one model at one step. Decided here: regimes are what a theory says of inputs that
walk at random, so every sentence on them says so. A vocabulary is all there: its mean cosine has no interval,
and it is called anisotropic where it exceeds that of random directions by `LEAST`. What a stage of the norm
changes is told where the intervals of the two stages do not overlap.
"""

from __future__ import annotations

import math
from collections import Counter

from isoscope.formatting import listed, plain, short, spread, two
from isoscope.show.readings import QUERY_KEY, SiteReading, ends, numbered, of
from isoscope.show.regimes import LOCALISED, REGIMES, UNDECIDED, regime_of
from isoscope.show.say.shapes import STRONG, WEAK, graded

LEAST = 0.01
"""A mean cosine of a vocabulary nearer to that of random directions is not called anisotropic."""

WALK = 0.5
"""Inputs whose spread grows slower than s^½ are nearer to standing still than to a random walk."""

CHANCE = 0.05
"""Own predictions agree better than those of other heads where they would so seldom by chance."""

ALONG = 0.3
"""A cosine nearer to 0 is not told in the headline: in 100 dimensions chance alone reaches .2."""

SCALE_OF_WORDS = (
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
    return " ".join(f"{part}." for part in (_placed(found), _both(found), _bias(found)) if part)


def in_short(found: list[SiteReading]) -> str:
    """The headline of weights of which the sentences above say nothing; empty where there are none."""
    subjects = {
        "queries and keys": [r for r in found if r.kind in QUERY_KEY],
        "vocabularies": [r for r in found if "_vocabulary" in r.kind],
        "the final norm": [r for r in found if r.kind.startswith("norm")],
    }
    if known := [name for name, group in subjects.items() if any(r.known for r in group)]:
        rest = "where heads would look, or on how a vocabulary lies"
        return f"Little could be read of these weights: numbers on {listed(known)}, but none on {rest}."
    none = "Nothing that was read of these weights is a number; the notes say why."
    return none if any(subjects.values()) else ""


def localisation(found: list[SiteReading]) -> list[str]:
    """Where heads would look, how symmetric W is, and whether what was measured follows."""
    out = []
    heads = _self_attention(found, "trace")
    if heads:
        undecided = sum(regime_of(r) == UNDECIDED for r in heads)
        text = f"{undecided} of {len(heads)} heads are undecided"
        if on_data := _self_attention(found, "trace_on_data"):
            also = sum(regime_of(r) == UNDECIDED for r in on_data)
            text += f", {also} with the covariance of the inputs’ increments in W"
        if undecided < len(heads):
            text += "; of the others the colour says where they would look"
        top, low = ends(heads)
        at_low, at_top = (f"{r.number} (layer {r.layer} head {r.head})" for r in (low, top))
        null = f"; random weights give {short(top.null)}" if math.isfinite(top.null) else ""
        out = [f"{text}.", f"The trace of W goes from {at_low} to {at_top}{null}."]
    if shares := of(found, "symmetric_share"):
        null = f", of random weights {short(shares[0].null)}" if math.isfinite(shares[0].null) else ""
        out.append(f"Averaged over heads, {_span(shares)} of ‖W‖² is symmetric{null}.")
    if crossed := sum(r.measure == "trace" and r.head is not None for r in found) - len(heads):
        many = "heads of cross-attention are" if crossed > 1 else "head of cross-attention is"
        out.append(f"The theory is of self-attention: {crossed} {many} not counted.")
    return [*out, *_walks(found), *_agreements(found)]


def _self_attention(found: list[SiteReading], measure: str) -> list[SiteReading]:
    return [r for r in found if (r.measure, r.kind) == (measure, "query_key") and r.head is not None]


def _placed(found: list[SiteReading]) -> str:
    """Where heads would look; where the inputs were seen not to walk, that comes first."""
    heads = _self_attention(found, "trace")
    if not heads:
        return ""
    slopes, counts = _slopes(found), Counter(map(regime_of, heads))
    number, look = (f"{len(heads)} heads", "they look") if len(heads) > 1 else ("the one head", "it looks")
    if localised := sum(counts[name] for name in LOCALISED):
        some = f"{localised} of {number}" if len(heads) > 1 else number
        places = listed([_place(name, heads, counts[name]) for name in LOCALISED if counts[name]])
        text = f"the weights decide where {some} would look: {places}"
    else:
        text = f"the weights of {number} decide nothing about where {look}"
    evenly = [f"{counts[name]} would let {what}" for name, what in _EVENLY.items() if counts[name]]
    text += f"; {listed(evenly)}" if evenly else ""
    if slopes and all(map(_stands, slopes)):
        where = "all layers" if len(slopes) > 1 else numbered(slopes)
        premise = f"On this data the inputs of attention do not walk at random (walk slope {_span(slopes)} "
        premise += f"in {where}, where a walk has 1), so the theory of where heads look does not apply"
        return f"{premise}. For inputs that do walk, {text}"
    return f"For inputs that walk at random, {text}"


def _place(name: str, heads: list[SiteReading], number: int) -> str:
    """A regime in words: a half, or within 1/|tr W| of the middle, as a share of the length."""
    if name not in ("middle", "middle_early"):
        return f"{REGIMES[name].says} ({number})"
    reach = spread([100 / abs(r.value) for r in heads if regime_of(r) == name], lambda x: f"{x:.0f}")
    side = "past" if name == "middle" else "before"
    return f"within {reach} % of the length {side} the middle ({number})"


def _slopes(found: list[SiteReading]) -> list[SiteReading]:
    return [r for r in of(found, "walk_slope") if r.known]


def _stands(slope: SiteReading) -> bool:
    """Whether inputs are nearer to standing still than to a walk: for the whole interval, if there is one."""
    return (slope.high if slope.bounded else slope.value) < WALK


def _walks(found: list[SiteReading]) -> list[str]:
    slopes = _slopes(found)
    if not slopes:
        return []
    still = [r for r in slopes if _stands(r)]
    so = f", which they do not in {numbered(still)}" if still else ""
    so = ", so the theory’s premise holds nowhere" if len(still) == len(slopes) else so
    text = f"The squared distance of two inputs grows with their distance s as s to the power {_span(slopes)}"
    return [f"{text}; it would be 1 if they walked at random{so}."]


def _agreements(found: list[SiteReading]) -> list[str]:
    """How far attention ranks the places as predicted, and whether better than other heads predict."""
    known = [r for r in found if r.measure == "propagation_agreement" and r.known]
    heads = [r for r in known if r.head is not None]
    if not heads:
        return []
    over = f"Spearman, mean over {len(heads)} heads" if len(heads) > 1 else "Spearman, one head"
    text = "Measured attention ranks the places as a head’s own weights predict with r = "
    text += f"{plain(sum(r.value for r in heads) / len(heads))} ({over})"
    tested = [r for r in known if r.head is None and math.isfinite(r.p)]
    if not tested:
        return [f"{text}."]
    counts = [sum(h.layer == r.layer for h in heads) for r in tested]
    control = sum(n * r.null for n, r in zip(counts, tested, strict=True)) / sum(counts)
    p = fisher([r.p for r in tested])
    agree, chance = (
        "agree" if p <= CHANCE else "do not agree",
        f"p = {short(p, 2)}" if p >= 0.001 else "p < 0.001",
    )
    text += "; the predictions of the layer’s other heads and their mirror images give "
    return [f"{text}{plain(control)} on average: own predictions {agree} better than these ({chance})."]


def fisher(chances: list[float]) -> float:
    """The p of several independent ones together, P(χ² ≥ −2Σ log p) with two degrees of freedom each.

    >>> round(fisher([0.3]), 4), round(fisher([0.1, 0.1]), 4)
    (0.3, 0.0561)
    """
    half = -sum(math.log(p) for p in chances) or 1e-300
    terms = (k * math.log(half) - half - math.lgamma(k + 1) for k in range(len(chances)))
    return min(1.0, sum(map(math.exp, terms)))


def vocabulary(found: list[SiteReading]) -> list[str]:
    """The matrices as they are, centred and without their top directions; I(W); the hidden states beside."""
    out = []
    for kind, name in _VOCABULARIES.items():
        forms = {"centred": "_centred", "without its top directions": "_without_top"}
        cosines = {how: r for how, form in forms.items() if (r := at(found, "mean_cosine", kind + form))}
        left = f"; {listed([f'{how} {plain(r.value)}' for how, r in cosines.items()])}" if cosines else ""
        if cosine := at(found, "mean_cosine", kind):
            numbers = (
                f"mean cosine {plain(cosine.value)}, where random directions have {plain(cosine.chance)}"
            )
            out.append(f"The {name} is {grade(cosine)}: {numbers}{left}.")
        unit, raw = (at(found, f"partition_isotropy{form}", kind) for form in ("_unit", ""))
        parts = [
            f"{r.number} {how}{f' (by chance {short(r.null)})' if math.isfinite(r.null) else ''}"
            for r, how in ((unit, "in units of the mean norm"), (raw, "with the norms as they are"))
            if r
        ]
        out += [f"The partition isotropy of the {name} is {listed(parts)}."] if parts else []
    hidden = at(found, "mean_cosine_between", "norm_output") or at(found, "mean_cosine_between", "output")
    if hidden and out:
        text = "The hidden states that leave the model are another cloud: their mean cosine between sequences"
        out.append(f"{text} is {hidden.measured}.")
    return out


def _both(found: list[SiteReading]) -> str:
    """The vocabularies there are in one sentence."""
    there = [(name, r) for kind, name in _VOCABULARIES.items() if (r := at(found, "mean_cosine", kind))]
    if not there:
        return ""
    subjects = [f"The {there[0][0]} is", *(f"the {name}" for name, _ in there[1:])]
    said = [f"{grade(r)} (mean cosine {plain(r.value)})" for _, r in there]
    text = ", ".join(map(" ".join, zip(subjects, said, strict=True)))
    return f"{text}, where random directions have {plain(there[0][1].chance)}"


def grade(reading: SiteReading) -> str:
    """The word that the mean cosine of a vocabulary earns."""
    above = reading.value - reading.chance
    return "not anisotropic" if above < LEAST else graded(above)


def norm(found: list[SiteReading]) -> list[str]:
    """The norm's weights, and what its stages make of the cloud where there is data."""
    out = []
    size, outliers, bias = (
        at(found, f"norm_{m}", "norm") for m in ("weight_size", "weight_outliers", "bias_size")
    )
    if size:
        text = f"The root mean square of γ is {size.number}"
        if outliers:
            some = f", and {outliers.number} of its entries stand out"
            text += some if outliers.value else ", without outliers"
        out.append(f"{text}{f'; β is {bias.number} long' if bias else ''}.")
    for measure, name in (("relative_drift", "relative drift"), ("mean_cosine_between", "mean cosine")):
        before, scaled, after = (
            at(found, measure, f"norm_{kind}") for kind in ("before", "scaled", "output")
        )
        if before and after:
            middle = f", {plain(scaled.value)} after × γ" if scaled else ""
            text = f"The {name} is {plain(before.value)} before the norm{middle} "
            text += f"and {plain(after.value)} after it"
            out.append(f"{text}{'' if before.apart(after) else ', no difference to be told from chance'}.")
    if cancels := at(found, "bias_cancels", "norm"):
        text = f"The cosine of β with what would cancel the mean is {plain(cancels.value)}"
        out.append(f"{text}; at 1 it cancels.")
    return out


def _bias(found: list[SiteReading]) -> str:
    """What β does, where the intervals tell it, else how it lies to the vocabulary, where that is clear."""
    scaled, after = (at(found, "relative_drift", f"norm_{stage}") for stage in ("scaled", "output"))
    if scaled and after and scaled.apart(after):
        old, new = two(scaled.value, after.value)
        return f"The final norm’s β takes the relative drift from {old} to {new}"
    along = at(found, "bias_vocabulary_cosine", "norm")
    if along and abs(along.value) >= ALONG:
        side = "along" if along.value > 0 else "against"
        return f"The final norm’s β points {side} the mean of the vocabulary (cosine {plain(along.value)})"
    return ""


def at(found: list[SiteReading], measure: str, kind: str) -> SiteReading | None:
    """The reading of this measure at this kind of site, no head; None where there is no value."""
    return next((r for r in of(found, measure, kind) if r.known), None)


def _span(found: list[SiteReading]) -> str:
    return spread([r.value for r in found], lambda value: short(value, 2))
