"""The sentences of each family, from readings that have a value.

Where there are several steps they speak of the last one, and where there are several models one
sentence of each, up to `MOST_TOLD`. A sentence is left out where its measure is not there. Two frequency
bands are told apart where their intervals do not overlap, as steps are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from isoscope.formatting import listed, short
from isoscope.show.measures import COSINE_BY_FREQUENCY, DRIFT_BY_FREQUENCY, TOGETHER
from isoscope.show.readings import (
    ATTENTION,
    PLACES,
    SiteReading,
    ends,
    models,
    nulls,
    of,
    unique,
    where,
)
from isoscope.show.say import attention, weights
from isoscope.show.say.shapes import MOST_NAMED, Line, joined, latest, lowered, ranged, topmost

MOST_TOLD = 3
"""So many models are told in turn; the figure shows the others."""

_COLLAPSE = "is left without its mean; 0 would be a collapse to one vector."
_ENTROPY = "The normalised entropy of attention"
_RATIO = "The variance spreads over"
_FEW = "as few as {low.measured} directions in {low.at} and as many as {top.brief} in {top.at}"
_ISOTROPIC, _RANDOM = ", where an isotropic cloud shows {nulls}", ", where random directions give {nulls}"
LINES = {
    "mean_norm": Line(
        "The mean length of a vector is {low.number} ({low.site}) to {top.number} ({top.site}).",
        "The mean length of a vector is {low.number}.",
    ),
    "participation_ratio_split": Line(
        f"{_RATIO} {_FEW} (split-half participation ratio){{null}}.",
        f"{_RATIO} {{low.measured}} directions (split-half participation ratio){{null}}.", _ISOTROPIC,
    ),
    "participation_ratio": Line(
        f"{_RATIO} {_FEW} (participation ratio){{null}}.",
        f"{_RATIO} {{low.measured}} directions (participation ratio){{null}}.", _ISOTROPIC,
    ),
    "rank_residual": Line(
        f"Of a sequence, at least {{low.measured}} in {{low.at}} {_COLLAPSE}",
        f"Of a sequence, {{low.measured}} {_COLLAPSE}",
    ),
    "intrinsic_dimension": Line(
        "Among nearest neighbours the dimension (TwoNN) is {range}{null}.",
        null="; of an isotropic cloud of as many vectors {nulls}",
    ),
    "uniformity": Line(
        "The uniformity of the directions is {range}; it is {null}0 when all are one.",
        null="{nulls} when they fill the sphere evenly and ",
    ),
    "partition_isotropy_unit": Line(
        "In units of the mean norm the partition isotropy is {range}{null}.", null=_RANDOM
    ),
    "partition_isotropy": Line(
        "With the norms as they are the partition isotropy is {range}{null}.", null=_RANDOM
    ),
    "normalised_entropy": Line(
        f"{_ENTROPY} lies between {{low.measured}} in layer {{low.layer}} and {{top.brief}} in layer "
        "{top.layer}; even attention has 1.",
        f"{_ENTROPY} is {{top.measured}}; even attention has 1.",
    ),
    "sink_mass": Line(
        "The first token takes up to {top.measured} of a query’s attention, in layer {top.layer}{null}.",
        "The first token takes {top.measured} of a query’s attention{null}.",
        "; chance gives one key {chance}",
    ),
}  # fmt: skip
"""Sentences that only fill a shape, by measure."""

_BANDS = {
    "drift further": TOGETHER[DRIFT_BY_FREQUENCY],
    "point more alike": TOGETHER[COSINE_BY_FREQUENCY],
}
_TOKENS = {"rare": "rare tokens", "in between": "tokens in between", "frequent": "frequent tokens"}
_LEFT_OUT = {
    "not_finite": ("vector is", "vectors are", "not finite (NaN or infinite)"),
    "zero_vectors": ("vector is", "vectors are", "zero and so without direction"),
    "not_finite_rows": ("query has", "queries have", "scores that are not finite"),
    "blind_rows": ("query is", "queries are", "without a key to see"),
}
"""Of health: the subject in singular and plural, and what is the matter with it."""


def _directions(found: list[SiteReading]) -> list[str]:
    between, bare = of(found, "mean_cosine_between"), of(found, "mean_cosine")
    if not between:
        text = "There is only the mean cosine over all pairs, which pairs within one sequence inflate, "
        return [f"{text}so no claim hangs on it."] if bare else []
    top, low = ends(between)
    several = len(between) > 1
    range_ = f"lies between {low.measured} in {low.at} and {top.brief} in {top.at}"
    range_ = range_ if several else f"is {top.measured}"
    out = [f"The mean cosine between sequences {range_}; an isotropic cloud has {short(top.chance)}."]
    for whole in [r for r in bare if r.site == top.site][:1]:
        part = f"Over all pairs {top.at if several else 'it'} reads {whole.number}"
        if top.bounded and whole.value > top.high:
            part += ", inflated by pairs within one sequence, which are alike"
        rogue = [r for r in of(found, "rogue_contribution") if r.site == top.site]
        if rogue and whole.value > 0:
            share = f"{rogue[0].number} of the {whole.number}"
            part += f"; the single largest dimension{_noted(rogue[0])} makes {share}"
        out.append(f"{part}.")
    return out


def _drift(found: list[SiteReading]) -> list[str]:
    drifts = of(found, "relative_drift")
    told = [r for r in drifts if r.above(r.null)]
    untold = [r for r in drifts if r.bounded and r.low <= r.null]
    if told:
        top = ends(told)[0]
        most, at = ("up to ", f", in {top.at}") if len(drifts) > 1 else ("", "")
        rest = [r for r in drifts if r not in told]
        but = f"; in {where(rest)} no drift can be told from chance" if rest else ""
        return [
            f"The length of the mean vector is {most}{top.measured} of the mean length{at}; "
            f"a cloud centred on the origin shows {short(top.null)} at this n{but}."
        ]
    if untold:
        top, most = topmost(untold, "at most ")
        return [
            f"No drift can be told from chance at this n: the relative drift is {most}{top.measured}, "
            f"and a cloud centred on the origin shows {short(top.null)}."
        ]
    if not drifts:
        return []
    top, low = ends(drifts)
    range_ = f"{low.number} ({low.site}) to {top.number} ({top.site})" if len(drifts) > 1 else top.number
    lacking = "a null" if all(r.bounded for r in drifts) else "an interval"
    return [f"The relative drift is {range_}; without {lacking} it cannot be told from chance."]


def _spectrum(found: list[SiteReading]) -> list[str]:
    ratios = (m for m in ("participation_ratio_split", "participation_ratio") if of(found, m))
    out = [LINES[m].fill(of(found, m)) for m in ratios][:1]
    if shares := of(found, "top_share"):
        top, most = topmost(shares, "at most ")
        at = f" in {top.at}" if most else ""
        if math.isfinite(top.null):
            at += f"; in an isotropic cloud it holds {short(100 * top.null)} %"
        out.append(f"One single direction holds {most}{short(100 * top.value)} % of the variance{at}.")
    return out


def _dimensions(found: list[SiteReading]) -> list[str]:
    """Outlier dimensions; massive activations and the largest number."""
    outliers, massive, largest = (
        of(found, m) for m in ("outlier_dimensions", "massive_activations", "largest_activation")
    )
    out, parts = [], []
    if there := [r for r in outliers if r.value]:
        top, most = topmost(there)
        vary = "dimension varies" if top.value == 1 else "dimensions vary"
        out = [f"In {where(there)}, {most}{top.number} {vary} far more than the rest{_at(top, outliers)}."]
    elif outliers:
        out = ["No dimension varies far more than the rest."]
    if there := [r for r in massive if r.value]:
        top = ends(massive)[0]
        stand = "activation stands" if top.value == 1 else "activations stand"
        others = [r for r in there if r is not top]
        as_many = [r for r in others if r.value == top.value]
        fewer = [r for r in others if r.value < top.value]
        parts = [
            f"{top.number} massive {stand} in {top.at}{_noted(top)}"
            + (f", as many in {where(as_many)}" if as_many else "")
            + (f", fewer in {where(fewer)}" if fewer else "")
        ]
    elif massive:
        parts = ["there are no massive activations"]
    if largest:
        top = ends(largest)[0]
        parts.append(f"the largest single number is {top.number}{_at(top, largest)}")
    return out + joined(parts)


def _at(top: SiteReading, among: list[SiteReading]) -> str:
    """Which of several sites it is, and the note of the reading."""
    aside = [*([top.at] if len(among) > 1 else []), *([top.note] if top.note else [])]
    return f" ({': '.join(aside)})" if aside else ""


def _noted(reading: SiteReading) -> str:
    return f" ({reading.note})" if reading.note else ""


def _tokens(found: list[SiteReading]) -> list[str]:
    """Rare tokens against frequent ones, then one token over its contexts."""
    parts = list(filter(None, (_bands(found, verb, labels) for verb, labels in _BANDS.items())))[:1]
    correlations = of(found, "frequency_correlation")
    along = {
        "rare": [r for r in correlations if r.below(0) and r.value < 0],
        "frequent": [r for r in correlations if r.above(0) and r.value > 0],
    }
    for who, group in along.items():
        if group:
            top = max(group, key=lambda r: abs(r.value))
            at = f", in {top.at}" if len(group) > 1 else ""
            strongest = f"r = {top.number}, 95 % interval {top.interval}{at}"
            parts.append(f"in {where(group)} {who} tokens lie further along the mean ({strongest})")
    out = joined(parts)
    if same := of(found, "self_similarity_adjusted"):
        sure = "cosine" if all(r.bounded for r in same) else "cosine, without an interval"
        out.append(f"{_more_alike('The vectors of one token in different sequences', same)} ({sure}).")
    return out


def _more_alike(who: str, found: list[SiteReading]) -> str:
    """By how much they are more alike than any two; where that is not so, or cannot be told, it is said."""
    rest = [r for r in found if not (r.low if r.bounded else r.value) > r.chance]
    if len(rest) == len(found):
        return f"{who} cannot be told to be more alike than any two: by {ranged(found)}"
    but = f", in {where(rest)} not beyond chance" if rest else ""
    return f"{who} are more alike than any two by {ranged(found)}{but}"


def _bands(found: list[SiteReading], verb: str, labels: dict[str, str]) -> str:
    bands = [(label, {r.site: r for r in of(found, measure)}) for measure, label in labels.items()]
    bands = [(label, sites) for label, sites in bands if sites]
    if len(bands) < 2:
        return ""
    (one, mine), (two, other) = bands[0], bands[-1]
    pairs = [(mine[site], other[site]) for site in mine if site in other]
    above = [(a, b) for a, b in pairs if a.over(b)]
    below = [(b, a) for a, b in pairs if b.over(a)]
    parts = []
    for who, than, group in ((one, two, above), (two, one, below)):
        if group:
            a, b = max(group, key=lambda pair: pair[0].value - pair[1].value)
            most = f", most in {a.at}" if len(group) > 1 else ""
            place = f"in {where(a for a, _ in group)}{most} ({a.number} against {b.number})"
            parts.append(f"{_TOKENS[who]} {verb} than {_TOKENS[than]} {place}")
    if not parts and pairs:
        return f"whether {_TOKENS[one]} or {_TOKENS[two]} {verb} cannot be told from chance at this n"
    return ", and ".join(parts)


def _sequences(found: list[SiteReading]) -> list[str]:
    inside = of(found, "intra_similarity_adjusted")
    chance = f"; by chance by {nulls(inside)}" if inside and nulls(inside) else ""
    return [f"{_more_alike('Vectors of one sequence', inside)}{chance}."] if inside else []


def _layers(found: list[SiteReading]) -> list[str]:
    """Where the arrangement changes most, and what is left of the first layer's."""
    out = []
    if previous := of(found, "cka_previous"):
        top, low = ends(previous)
        if len(previous) > 1 and low.number == top.number:
            out.append(f"From layer to layer the arrangement changes alike, CKA {low.number}.")
        else:
            out.append(
                f"The arrangement changes most on the way into {low.at}: "
                f"its CKA with the layer before is {low.number}, without an interval."
            )
    if first := of(found, "cka_first"):
        last = max(first, key=lambda r: r.place)
        out.append(f"The last place, {last.at}, has a CKA of {last.number} with the first layer.")
    return out


def _comparison(readings: list[SiteReading]) -> str:
    """The rank correlations of each model and of all, with what they are worth."""
    out = []
    for drift in ("relative drift", "drift"):
        mine = [r for r in readings if r.measure == f"spearman_{drift.replace(' ', '_')}"]
        if not mine:
            continue
        each = [r for r in mine if r.model != "all models"]
        said = [f"{_correlated(r)} in {r.model}{_worth(r)}" for r in each]
        if len(each) > MOST_NAMED:
            top, low = ends(each)
            said = [f"{_correlated(low)} ({low.model}) to {_correlated(top)} ({top.model})"]
        said += [f"{_correlated(r)} over {r.model}{_worth(r)}" for r in mine if r not in each]
        out.append(f"Mean cosine and {drift}, Spearman’s r over layers: {listed(said)}.")
    if out:
        out.append(
            "Layers of one model are not independent, so p is nominal. When norms are equal the mean cosine "
            "is about the square of the relative drift: those two are no independent evidence of each other."
        )
    return "\n".join(out)


def _correlated(reading: SiteReading) -> str:
    return f"{reading.value:.2f}".replace("-", "−")


def _worth(reading: SiteReading) -> str:
    """The number of layers and the nominal p; a p of 0 is a limit of its formula and left out."""
    p = f", nominal p = {reading.p:.2g}" if reading.p > 0 else ""
    return f" ({reading.n} layers{p})"


def _training(readings: list[SiteReading]) -> str:
    out = []
    losses = [r for r in readings if r.measure == "loss" and r.step is not None]
    for name in models(losses)[:MOST_TOLD]:
        own = sorted((r for r in losses if r.model == name), key=lambda r: r.step or 0)
        subject = f"The loss of {name}" if len(models(losses)) > 1 else "The loss"
        first, last, best = own[0], own[-1], min(own, key=lambda r: r.value)
        begin, end, lowest = (f"{r.number} at step {r.step:,}" for r in (first, last, best))
        turn = f"; the lowest is {lowest}" if best not in (first, last) else ""
        out.append(
            f"{subject} is {begin}." if first is last else f"{subject} goes from {begin} to {end}{turn}."
        )
    return " ".join(out)


def _health(readings: list[SiteReading]) -> str:
    out = []
    for measure, (one, many, words) in _LEFT_OUT.items():
        bad = [r for r in of(readings, measure) if r.value > 0]
        for name in models(bad):
            own = [r for r in bad if r.model == name]
            top, most = topmost(own)
            subject = one if top.value == 1 else many
            out.append(f"In {where(own)} of {name}, {most}{top.number} {subject} {words}, and left out.")
    return " ".join(out)


def generic(readings: list[SiteReading]) -> str:
    """The range of every measure, for a family that is not known here."""
    out = []
    for measure in unique(r.measure for r in readings):
        top, low = ends([r for r in readings if r.measure == measure])
        text = f"{measure.replace('_', ' ').capitalize()} is {low.number}"
        out.append(f"{text}." if top is low else f"{text} ({low.site}) to {top.number} ({top.site}).")
    return " ".join(out)


Part = str | Callable[[list[SiteReading]], list[str]]
"""What a family says of one model at one step: a measure whose line is filled, or a function."""


@dataclass(frozen=True)
class Family:
    """What is said of each model at its last step, of these kinds of site; () for every kind.

    Where `split`, each kind is spoken of by itself: self-attention, then cross-attention.
    """

    parts: tuple[Part, ...]
    kinds: tuple[str, ...] = PLACES
    split: bool = False

    def of_model(self, found: list[SiteReading]) -> list[str]:
        """The sentences on the readings of one model at one step."""
        if not self.split:
            return self._said([r for r in found if not self.kinds or r.kind in self.kinds])
        own, cross = (self._said([r for r in found if r.kind == kind]) for kind in self.kinds)
        if own and cross:
            cross[0] = f"Cross-attention: {lowered(cross[0])}"
        return [*own, *cross]

    def _said(self, found: list[SiteReading]) -> list[str]:
        out = []
        for part in self.parts:
            if not isinstance(part, str):
                out += part(found)
            elif group := of(found, part):
                out.append(LINES[part].fill(group))
        return out


FAMILIES = {
    "directions": Family((_directions,)),
    "drift": Family((_drift, "mean_norm")),
    "spectrum": Family((_spectrum,)),
    "attention": Family(("normalised_entropy", "sink_mass"), ATTENTION, split=True),
    "drift in attention": Family((attention.drift,), ATTENTION, split=True),
    "queries": Family((attention.queries,), ATTENTION, split=True),
    "dimensions": Family((_dimensions,)),
    "tokens": Family((_tokens,)),
    "sequences": Family((_sequences, "rank_residual")),
    "layers": Family((_layers,)),
    "sample": Family(("intrinsic_dimension", "uniformity")),
    "partition": Family(("partition_isotropy_unit", "partition_isotropy")),
    "query_key": Family((weights.localisation,), ()),
    "vocabulary": Family((weights.vocabulary,), ()),
    "norm": Family((weights.norm,), ()),
}
_TOGETHER = {"comparison": _comparison, "training": _training, "health": _health}  # of all models and steps


def said_of(family: str, readings: list[SiteReading]) -> str:
    """The sentences of a family, of each model with its name and step in front where there are several."""
    if family not in FAMILIES:
        return _TOGETHER.get(family, generic)(readings)
    known = FAMILIES[family]
    sited = [r for r in readings if not known.kinds or r.kind in (*PLACES, *ATTENTION)]
    names, out = models(sited), []
    for name in names[:MOST_TOLD]:
        own, last = latest([r for r in sited if r.model == name])
        said = known.of_model(own)
        step = "" if last is None else f"step {last:,}"
        before = ", ".join(filter(None, [name, step])) if len(names) > 1 else step and f"At {step}"
        if said and before:
            said[0] = f"{before}: {lowered(said[0])}"
        out.append(" ".join(said if len(names) == 1 else said[:1]))
    if any(out) and len(names) > MOST_TOLD:
        rest = len(names) - MOST_TOLD
        out.append(f"The figure shows {rest if rest > 1 else 'one'} more.")
    return "\n".join(filter(None, out))
