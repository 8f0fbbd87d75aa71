"""The sentences on weights: where heads would look, how the vocabulary lies, what the final norm does.

Each takes the readings of one model at one step. Decided here: regimes are what a theory says of inputs that
walk at random, so every sentence on them says so. A vocabulary is all there: its mean cosine has no interval,
and it is called anisotropic where it exceeds that of random directions by `LEAST`. What a stage of the norm
changes is told where the intervals of the two stages do not overlap.
"""

from __future__ import annotations

import math
import re
from collections import Counter

from isoscope.formatting import listed, plain, short, spread, two
from isoscope.show.readings import QUERY_KEY, SiteReading, ends, numbered
from isoscope.show.regimes import LOCALISED, REGIMES, UNDECIDED, regime_of

LEAST = 0.01
"""A mean cosine of a vocabulary nearer to that of random directions is not called anisotropic,"""

WEAK, STRONG = 0.1, 0.5
"""under this it is weakly, above this strongly so, as of hidden states."""

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
    parts = [_placed(found), _both(found), _bias(found)]
    return " ".join(f"{part}." for part in parts if part)


def in_short(found: list[SiteReading]) -> str:
    """The headline of weights of which the sentences above say nothing; empty where there are none."""
    kinds = {r.kind: "" for r in found if r.known}
    mine = {
        "queries and keys": any(kind in QUERY_KEY for kind in kinds),
        "vocabularies": any("_vocabulary" in kind for kind in kinds),
        "the final norm": any(kind.startswith("norm") for kind in kinds),
    }
    known = [name for name, there in mine.items() if there]
    if known:
        rest = "where heads would look, or on how a vocabulary lies"
        return f"Little could be read of these weights: numbers on {listed(known)}, but none on {rest}."
    weighed = any(r.kind in QUERY_KEY or "_vocabulary" in r.kind or r.kind.startswith("norm") for r in found)
    return "Nothing that was read of these weights is a number; the notes say why." if weighed else ""


def localisation(found: list[SiteReading]) -> list[str]:
    """Where heads would look, how symmetric W is, and whether what was measured follows."""
    out = []
    heads = _self_attention(found, "trace")
    crossed = sum(r.measure == "trace" and r.head is not None for r in found) - len(heads)
    if heads:
        open_ = [r for r in heads if regime_of(r) == UNDECIDED]
        of_all = f"{len(open_)} of {len(heads)} heads are undecided"
        others = "; of the others the colour says where they would look" if len(open_) < len(heads) else ""
        out.append(f"{of_all}{_on_data(found)}{others}.")
        top, low = ends(heads)
        text = (
            f"The trace of W goes from {short(low.value)} ({_head(low)}) to {short(top.value)} ({_head(top)})"
        )
        out.append(
            f"{text}; random weights give {short(top.null)}." if math.isfinite(top.null) else f"{text}."
        )
    shares = [r for r in found if r.measure == "symmetric_share" and r.head is None]
    if shares:
        of_random = f", of random weights {short(shares[0].null)}" if math.isfinite(shares[0].null) else ""
        out.append(f"Averaged over heads, {_span(shares)} of ‖W‖² is symmetric{of_random}.")
    if crossed:
        many = "heads of cross-attention are" if crossed > 1 else "head of cross-attention is"
        out.append(f"The theory is of self-attention: {crossed} {many} not counted.")
    return [*out, *_walks(found), *_agreements(found)]


def _self_attention(found: list[SiteReading], measure: str) -> list[SiteReading]:
    return [r for r in found if (r.measure, r.kind) == (measure, "query_key") and r.head is not None]


def _on_data(found: list[SiteReading]) -> str:
    heads = _self_attention(found, "trace_on_data")
    open_ = sum(regime_of(r) == UNDECIDED for r in heads)
    return f", {open_} with the covariance of the inputs’ increments in W" if heads else ""


def _placed(found: list[SiteReading]) -> str:
    """Where heads would look; where the inputs were seen not to walk, that comes first."""
    heads = _self_attention(found, "trace")
    if not heads:
        return ""
    slopes = _slopes(found)
    counts = Counter(map(regime_of, heads))
    number = f"{len(heads)} heads" if len(heads) > 1 else "the one head"
    localised = sum(counts[name] for name in LOCALISED)
    if localised:
        some = f"{localised} of {number}" if len(heads) > 1 else number
        text = f"the weights decide where {some} would look: "
        text += listed([_place(name, heads, counts[name]) for name in LOCALISED if counts[name]])
    else:
        look = "they look" if len(heads) > 1 else "it looks"
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
    return [r for r in found if r.measure == "walk_slope" and r.head is None and r.known]


def _stands(slope: SiteReading) -> bool:
    """Whether inputs are nearer to standing still than to a walk: for the whole interval, if there is one."""
    return (slope.high if slope.bounded else slope.value) < WALK


def _head(reading: SiteReading) -> str:
    return f"layer {reading.layer} head {reading.head}"


def _walks(found: list[SiteReading]) -> list[str]:
    slopes = _slopes(found)
    if not slopes:
        return []
    still = [r for r in slopes if _stands(r)]
    text = f"The squared distance of two inputs grows with their distance s as s to the power {_span(slopes)}"
    text += "; it would be 1 if they walked at random"
    if still:
        where = "nowhere" if len(still) == len(slopes) else f"not in {numbered(still)}"
        text += (
            f", so the theory’s premise holds {where}" if where == "nowhere" else f", which they do {where}"
        )
    return [f"{text}."]


def _agreements(found: list[SiteReading]) -> list[str]:
    """How far attention ranks the places as predicted, and whether better than other heads predict."""
    own = [r for r in found if r.measure == "propagation_agreement" and r.known]
    heads, layers = ([r for r in own if (r.head is None) == whole] for whole in (False, True))
    if not heads:
        return []
    text = "Measured attention ranks the places as a head’s own weights predict with r = "
    mean = sum(r.value for r in heads) / len(heads)
    over = f"Spearman, mean over {len(heads)} heads" if len(heads) > 1 else "Spearman, one head"
    held = [(sum(h.layer == r.layer for h in heads), told) for r in layers if (told := _HELD.search(r.note))]
    if not held:
        return [f"{text}{plain(mean)} ({over})."]
    others, mirrored = (
        sum(n * float(told[at]) for n, told in held) / sum(n for n, _ in held) for at in (1, 2)
    )
    p = fisher([float(told[3]) for _, told in held])
    text += f"{plain(mean)} ({over}), as those of the layer’s other heads "
    text += f"predict with {plain(others)}, and as the mirror images of those with {plain(mirrored)}: "
    text += f"own predictions {'agree' if p <= CHANCE else 'do not agree'} better than those of other heads"
    text += f" (p = {short(p, 2)})" if p >= 0.001 else " (p < 0.001)"
    return [f"{text}{', but no better than mirror images' if p <= CHANCE and mean <= mirrored else ''}."]


_HELD = re.compile(r"other heads (-?[\d.]+), mirrored (-?[\d.]+); p = ([\d.e-]+)")


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
        if graded := _graded(found, kind):
            forms = {"centred": "_centred", "without its top directions": "_without_top"}
            there = [(how, r) for how, form in forms.items() if (r := at(found, "mean_cosine", kind + form))]
            left = listed([f"{how} {plain(r.value)}" for how, r in there]) if there else ""
            out.append(f"{graded}{f'; {left}' if left else ''}.")
        unit, raw = (at(found, f"partition_isotropy{form}", kind) for form in ("_unit", ""))
        parts = [
            f"{short(r.value)} {how}{f' (by chance {short(r.null)})' if math.isfinite(r.null) else ''}"
            for r, how in ((unit, "in units of the mean norm"), (raw, "with the norms as they are"))
            if r
        ]
        out += [f"The partition isotropy of the {name} is {listed(parts)}."] if parts else []
    hidden = next(
        (r for kind in ("norm_output", "output") if (r := at(found, "mean_cosine_between", kind))), None
    )
    if hidden and out:
        out.append(
            "The hidden states that leave the model are another cloud: their mean cosine between sequences "
            f"is {hidden.measured}."
        )
    return out


def _both(found: list[SiteReading]) -> str:
    """The vocabularies there are in one sentence."""
    there = [(name, r) for kind, name in _VOCABULARIES.items() if (r := at(found, "mean_cosine", kind))]
    if not there:
        return ""
    verb = "is "
    parts = []
    for name, reading in there:
        parts.append(f"the {name} {verb}{grade(reading)} (mean cosine {plain(reading.value)})")
        verb = ""
    text = f"{', '.join(parts)}, where random directions have {plain(_null(there[0][1]))}"
    return text[0].upper() + text[1:]


def grade(reading: SiteReading) -> str:
    """The word that the mean cosine of a vocabulary earns."""
    above = reading.value - _null(reading)
    if above < LEAST:
        return "not anisotropic"
    return (
        "strongly anisotropic" if above > STRONG else "anisotropic" if above >= WEAK else "weakly anisotropic"
    )


def _null(reading: SiteReading) -> float:
    return 0.0 if math.isnan(reading.null) else reading.null


def _graded(found: list[SiteReading], kind: str) -> str:
    reading = at(found, "mean_cosine", kind)
    if reading is None:
        return ""
    numbers = f"mean cosine {plain(reading.value)}, where random directions have {plain(_null(reading))}"
    return f"The {_VOCABULARIES[kind]} is {grade(reading)}: {numbers}"


def norm(found: list[SiteReading]) -> list[str]:
    """The norm's weights, and what its stages make of the cloud where there is data."""
    out = []
    size, outliers, bias = (
        at(found, f"norm_{m}", "norm") for m in ("weight_size", "weight_outliers", "bias_size")
    )
    if size:
        text = f"The root mean square of γ is {short(size.value)}"
        if outliers:
            text += (
                f", and {short(outliers.value)} of its entries stand out"
                if outliers.value
                else ", without outliers"
            )
        out.append(f"{text}{f'; β is {short(bias.value)} long' if bias else ''}.")
    for measure, name in (("relative_drift", "relative drift"), ("mean_cosine_between", "mean cosine")):
        there = {kind: at(found, measure, f"norm_{kind}") for kind in ("before", "scaled", "output")}
        before, scaled, after = there.values()
        if before and after:
            middle = f", {plain(scaled.value)} after × γ" if scaled else ""
            ends_ = plain(before.value), plain(after.value)
            text = f"The {name} is {ends_[0]} before the norm{middle} and {ends_[1]} after it"
            out.append(f"{text}{'' if _apart(before, after) else ', no difference to be told from chance'}.")
    cancels = at(found, "bias_cancels", "norm")
    if cancels:
        out.append(
            f"The cosine of β with what would cancel the mean is {plain(cancels.value)}; at 1 it cancels."
        )
    return out


def _bias(found: list[SiteReading]) -> str:
    """What β does, where the intervals tell it, else how it lies to the vocabulary, where that is clear."""
    scaled, after = (at(found, "relative_drift", f"norm_{stage}") for stage in ("scaled", "output"))
    if scaled and after and _apart(scaled, after):
        old, new = two(scaled.value, after.value)
        return f"The final norm’s β takes the relative drift from {old} to {new}"
    along = at(found, "bias_vocabulary_cosine", "norm")
    if along and abs(along.value) >= ALONG:
        side = "along" if along.value > 0 else "against"
        return f"The final norm’s β points {side} the mean of the vocabulary (cosine {plain(along.value)})"
    return ""


def _apart(a: SiteReading, b: SiteReading) -> bool:
    return a.low > b.high or a.high < b.low


def at(found: list[SiteReading], measure: str, kind: str) -> SiteReading | None:
    """The reading of this measure at this kind of site, no head; None where there is no value."""
    return next((r for r in found if (r.measure, r.kind, r.head) == (measure, kind, None) and r.known), None)


def _span(found: list[SiteReading]) -> str:
    return spread([r.value for r in found], lambda value: short(value, 2))
