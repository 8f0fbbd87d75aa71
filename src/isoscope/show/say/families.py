"""The sentences of each family, from readings that have a value; of several steps those of the last.

Two frequency bands differ where the interval of their difference leaves 0 out, widened for as many
sites as the sentence compares.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from isoscope.formatting import capital, listed
from isoscope.results.paired import paired
from isoscope.show.measures import COSINE_BY_FREQUENCY, DRIFT_BY_FREQUENCY, TOGETHER
from isoscope.show.readings import ATTENTION, PLACES, SiteReading, ends, models, of, steps, unique, where
from isoscope.show.say import attention, weights
from isoscope.show.say.shapes import MOST_NAMED, Line, lowered, one_end, ranged

MOST_TOLD = 3  # the number of models that have a sentence; the figure shows the others
_ISOTROPIC, _CHANCE = "; an isotropic cloud has {null}", "; chance gives {null}"
_OVER = ", minus that of any two vectors, is {range}"
LINES = {
    "mean_cosine_between": Line("The mean cosine between sequences is {range}", _ISOTROPIC),
    "mean_cosine": Line("Only the mean cosine over all pairs was measured. Pairs within one sequence inflate "
                        "it, so nothing is claimed"),
    "relative_drift": Line("The length of the mean vector over the mean length (relative drift) is {top}",
                           "; a cloud centred on the origin has {null} at this n", tested=True),
    "participation_ratio_split": Line("The number of directions that carry the variance (split-half "
                                      "participation ratio) is {range}", _ISOTROPIC),
    "participation_ratio": Line("The number of directions that carry the variance (participation ratio) is "
                                "{range}", _ISOTROPIC),
    "top_share": Line("The share of variance along one direction is {top}", _ISOTROPIC),
    "normalised_entropy": Line("The normalised entropy of attention is {range}; even attention has 1"),
    "sink_mass": Line("The share of attention on the first token is {top}", _CHANCE),
    "query_relative_drift": Line("In units of the mean length, the mean query is {top}", _CHANCE),
    "key_relative_drift": Line("In units of the mean length, the mean key is {top}", _CHANCE),
    "outlier_dimensions": Line("Dimensions that vary far more than the rest: {top}{note}"),
    "massive_activations": Line("Massive activations: {top}{note}"),
    "self_similarity_adjusted": Line(f"The cosine of two vectors of one token{_OVER}", _CHANCE, tested=True),
    "intra_similarity_adjusted": Line(f"The cosine of two vectors of one sequence{_OVER}", _CHANCE,
                                      tested=True),
    "rank_residual": Line("The part of the norm left after subtracting a sequence’s mean is {low}; 0 would "
                          "mean that its vectors coincide"),
    "cka_previous": Line("CKA with the previous layer is {range}"),
    "cka_first": Line("CKA with the first layer is {range}"),
    "intrinsic_dimension": Line("The dimension among nearest neighbours (TwoNN) is {range}", _ISOTROPIC),
    "uniformity": Line("The uniformity of directions is {range}; 0 would mean that all coincide",
                       ", and {null} that they fill the sphere evenly"),
    "partition_isotropy_unit": Line("The partition isotropy in units of the mean norm is {range}",
                                    "; random directions give {null}"),
    "partition_isotropy": Line("The partition isotropy of the vectors as they are is {range}",
                               "; random directions give {null}"),
    "norm_weight_size": Line("The root mean square of γ is {top}"),
    "norm_bias_size": Line("The length of β is {top}"),
    "bias_cancels": Line("The cosine of β with the direction that would cancel the mean is {top}"),
}  # fmt: skip
"""Sentences that only fill a shape, by measure."""

_BANDS = {"drift further": TOGETHER[DRIFT_BY_FREQUENCY], "point more alike": TOGETHER[COSINE_BY_FREQUENCY]}
_TOKENS = {"rare": "rare tokens", "in between": "tokens in between", "frequent": "frequent tokens"}
_LEFT_OUT = {
    "not_finite": "vectors that are not finite: NaN or infinite",
    "zero_vectors": "zero vectors, which have no direction",
    "not_finite_rows": "queries with scores that are not finite",
    "blind_rows": "queries without a visible key",
}


def _tokens(found: list[SiteReading]) -> list[str]:
    return list(filter(None, (_bands(found, verb, labels) for verb, labels in _BANDS.items())))[:1]


def _bands(found: list[SiteReading], verb: str, labels: dict[str, str]) -> str:
    bands = [(label, {r.site: r for r in of(found, measure)}) for measure, label in labels.items()]
    bands = [(label, sites) for label, sites in bands if sites]
    if len(bands) < 2:
        return ""
    (one, mine), (two, other) = (bands[end] for end in (0, -1))
    pairs = [(mine[site], other[site]) for site in mine if site in other]
    over = [(a, b) for a, b in pairs if paired(b, a, len(pairs)).above(0)]
    under = [(b, a) for a, b in pairs if paired(b, a, len(pairs)).below(0)]
    parts = []
    for who, than, group in (
        (one, two, over),
        (two, one, under),
    ):
        if group:
            a, b = max(group, key=lambda pair: pair[0].value - pair[1].value)
            most = f", most in {a.at}" if len(group) > 1 else ""
            sites = f"{where(a for a, _ in group)}{most} ({a.number} against {b.number})"
            parts.append(f"{_TOKENS[who]} {verb} than {_TOKENS[than]} in {sites}")
    if not parts and pairs:
        parts = [f"which {verb} is indistinguishable from chance: {_TOKENS[one]} or {_TOKENS[two]}"]
    return f"{capital('; '.join(parts))}." if parts else ""


def _comparison(readings: list[SiteReading]) -> str:
    """The rank correlation of each model and of all, with the number of layers and the nominal p."""
    out = []
    for drift in ("relative drift", "drift"):
        mine = [r for r in readings if r.measure == f"spearman_{drift.replace(' ', '_')}"]
        each = [r for r in mine if r.model != "all models"]
        said = [f"{_correlated(r)} in {r.model}" for r in each]
        if len(each) > MOST_NAMED:
            top, low = ends(each)
            said = [f"from {_correlated(low)} in {low.model} to {_correlated(top)} in {top.model}"]
        said += [f"{_correlated(r)} over {r.model}" for r in mine if r not in each]
        out += [f"Mean cosine and {drift}, Spearman’s r over layers: {listed(said)}."] if said else []
    if out:
        out.append(
            "Layers of one model are not independent, so p is nominal. With equal norms the mean cosine is "
            "about the square of the relative drift: they are not independent evidence."
        )
    return "\n".join(out)


def _correlated(r: SiteReading) -> str:
    """The correlation and what it is worth; a p of 0 is a limit of its formula and left out."""
    p = f", nominal p = {r.p:.2g}" if r.p > 0 else ""
    return f"{r.value:.2f} ({r.n} layers{p})".replace("-", "−")


def _training(readings: list[SiteReading]) -> str:
    out = []
    losses = [r for r in readings if r.measure == "loss" and r.step is not None]
    for name in models(losses)[:MOST_TOLD]:
        own = sorted((r for r in losses if r.model == name), key=lambda r: r.step or 0)
        lowest = min(own, key=lambda r: r.value)
        first, last, best = (f"{r.number} at step {r.step:,}" for r in (own[0], own[-1], lowest))
        subject = f"The loss of {name}" if len(models(losses)) > 1 else "The loss"
        turn = f"; the lowest is {best}" if best not in (first, last) else ""
        out.append(f"{subject} is {first}{f', then {last}' if len(own) > 1 else ''}{turn}.")
    return " ".join(out)


def _health(readings: list[SiteReading]) -> str:
    out = []
    for measure, what in _LEFT_OUT.items():
        bad = [r for r in of(readings, measure) if r.value > 0]
        for name in models(bad):
            own = [r for r in bad if r.model == name]
            out.append(f"Left out in {where(own)} of {name}: {what} ({one_end(ends(own)[0], 'up to', own)}).")
    return " ".join(out)


def generic(readings: list[SiteReading]) -> str:
    """The range of every measure, for a family that has no sentences of its own."""
    groups = {m: [r for r in readings if r.measure == m] for m in unique(r.measure for r in readings)}
    return " ".join(f"{m.replace('_', ' ').capitalize()} is {ranged(own)}." for m, own in groups.items())


Part = str | tuple[str, ...] | Callable[[list[SiteReading]], list[str]]
"""A measure whose line is filled, several of which the first that is there is used, or a function."""


@dataclass(frozen=True)
class Family:
    """What is said of each model at its last step at these sites; where `split`, of each kind apart."""

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
            if callable(part):
                out += part(found)
            else:
                measures = (part,) if isinstance(part, str) else part
                out += [LINES[m].fill(of(found, m)) for m in measures if of(found, m)][:1]
        return out


FAMILIES = {
    "directions": Family((("mean_cosine_between", "mean_cosine"),)),
    "drift": Family(("relative_drift",)),
    "spectrum": Family((("participation_ratio_split", "participation_ratio"), "top_share")),
    "anatomy of attention": Family((attention.anatomy,), ATTENTION, split=True),
    "attention": Family(("normalised_entropy", "sink_mass"), ATTENTION, split=True),
    "drift in attention": Family((attention.drift,), ATTENTION, split=True),
    "queries": Family(
        ("query_relative_drift", "key_relative_drift", attention.same_side), ATTENTION, split=True
    ),
    "dimensions": Family(("outlier_dimensions", "massive_activations")),
    "tokens": Family((_tokens, "self_similarity_adjusted")),
    "sequences": Family(("intra_similarity_adjusted", "rank_residual")),
    "layers": Family(("cka_previous", "cka_first")),
    "sample": Family(("intrinsic_dimension", "uniformity")),
    "partition": Family((("partition_isotropy_unit", "partition_isotropy"),)),
    "query_key": Family((weights.localisation,), ()),
    "vocabulary": Family((weights.vocabulary,), ()),
    "norm": Family(("norm_weight_size", "norm_bias_size", weights.stages, "bias_cancels"), ()),
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
        own = [r for r in sited if r.model == name]
        step = f"step {steps(own)[-1]:,}" if len(steps(own)) > 1 else ""
        said = known.of_model([r for r in own if r.step == steps(own)[-1]] if step else own)
        before = ", ".join(filter(None, [name, step])) if len(names) > 1 else step and f"At {step}"
        if said and before:
            said[0] = f"{before}: {lowered(said[0])}"
        out.append(" ".join(said if len(names) == 1 else said[:1]))
    if any(out) and len(names) > MOST_TOLD:
        rest = len(names) - MOST_TOLD
        out.append(f"The figure shows {rest if rest > 1 else 'one'} more.")
    return "\n".join(filter(None, out))
