"""The sentences on parts of a cloud and on its neighbours in the model: what the folded sections found.

Each takes the readings of one model at one step. Two frequency bands are told apart where their
intervals do not overlap, as steps are.
"""

from __future__ import annotations

import math

from isoscope.formatting import listed, short
from isoscope.show.panels import TOGETHER
from isoscope.show.readings import SiteReading, ends, nulls, of, unique, where

MOST_NAMED = 4
"""So many models are told one by one in a comparison; more are told by their range."""

_BANDS = {
    "drift further": TOGETHER["Relative drift by frequency of the token"],
    "point more alike": TOGETHER["Mean cosine by frequency of the token"],
}
_TOKENS = {"rare": "rare tokens", "in between": "tokens in between", "frequent": "frequent tokens"}


def dimensions(found: list[SiteReading]) -> list[str]:
    """Outlier dimensions; massive activations and the largest number."""
    outliers, massive, largest = (
        of(found, m) for m in ("outlier_dimensions", "massive_activations", "largest_activation")
    )
    out = []
    if outliers:
        there, top = [r for r in outliers if r.value], ends(outliers)[0]
        if there:
            most = f"{'up to ' if len(there) > 1 else ''}{short(top.value)}"
            vary = "dimension varies" if top.value == 1 else "dimensions vary"
            out.append(f"In {where(there)}, {most} {vary} far more than the rest{_at(top, outliers)}.")
        else:
            out.append("No dimension varies far more than the rest.")
    parts = []
    if massive:
        there = [r for r in massive if r.value]
        parts.append(_massive(there, ends(massive)[0]) if there else "there are no massive activations")
    if largest:
        top = ends(largest)[0]
        parts.append(f"the largest single number is {short(top.value)}{_at(top, largest)}")
    text = "; ".join(parts)
    return [*out, f"{text[0].upper()}{text[1:]}."] if parts else out


def _massive(there: list[SiteReading], top: SiteReading) -> str:
    """How many stand where most do; other sites have as many or fewer."""
    stand = "activation stands" if top.value == 1 else "activations stand"
    text = f"{short(top.value)} massive {stand} in {where([top])}{_named(top)}"
    others = [r for r in there if r is not top]
    for word, group in (
        ("as many", [r for r in others if r.value == top.value]),
        ("fewer", [r for r in others if r.value < top.value]),
    ):
        text += f", {word} in {where(group)}" if group else ""
    return text


def _at(top: SiteReading, among: list[SiteReading]) -> str:
    if len(among) == 1:
        return _named(top)
    return f" ({where([top])}: {top.note})" if top.note else f" ({where([top])})"


def _named(reading: SiteReading) -> str:
    return f" ({reading.note})" if reading.note else ""


def tokens(found: list[SiteReading]) -> list[str]:
    """Rare tokens against frequent ones, then one token over its contexts."""
    bands = next((text for verb, labels in _BANDS.items() if (text := _bands(found, verb, labels))), "")
    told = [r for r in of(found, "frequency_correlation") if r.bounded and (r.low > 0 or r.high < 0)]
    parts = [bands] if bands else []
    for sign, who in ((-1, "rare"), (1, "frequent")):
        if mine := [r for r in told if sign * r.value > 0]:
            top = max(mine, key=lambda r: abs(r.value))
            strongest = f"r = {short(top.value)}, 95 % interval {top.interval}"
            strongest += f", in {where([top])}" if len(mine) > 1 else ""
            parts.append(f"in {where(mine)} {who} tokens lie further along the mean ({strongest})")
    text = "; ".join(parts)
    out = [f"{text[0].upper()}{text[1:]}."] if parts else []
    if same := of(found, "self_similarity_adjusted"):
        sure = "cosine" if all(r.bounded for r in same) else "cosine, without an interval"
        out.append(f"{_more_alike('The vectors of one token in different sequences', same)} ({sure}).")
    return out


def _more_alike(who: str, found: list[SiteReading]) -> str:
    """By how much they are more alike than any two; where that is not so, or cannot be told, it is said."""
    above = [r for r in found if (r.low if r.bounded else r.value) > _chance(r)]
    if not above:
        return f"{who} cannot be told to be more alike than any two: by {_from_to(found)}"
    rest = [r for r in found if r not in above]
    but = f", in {where(rest)} not beyond chance" if rest else ""
    return f"{who} are more alike than any two by {_from_to(found)}{but}"


def _chance(reading: SiteReading) -> float:
    return reading.null if math.isfinite(reading.null) else 0.0


def _bands(found: list[SiteReading], verb: str, labels: dict[str, str]) -> str:
    bands = {label: {r.site: r for r in of(found, measure)} for measure, label in labels.items()}
    there = [(label, sites) for label, sites in bands.items() if sites]
    if len(there) < 2:
        return ""
    (one, mine), (two, other) = there[0], there[-1]
    pairs = [(mine[site], other[site]) for site in mine if site in other]
    above = [(a, b) for a, b in pairs if a.low > b.high]
    below = [(b, a) for a, b in pairs if a.high < b.low]
    parts = []
    for who, than, group in ((one, two, above), (two, one, below)):
        if group:
            a, b = max(group, key=lambda pair: pair[0].value - pair[1].value)
            most = f", most in {where([a])}" if len(group) > 1 else ""
            place = where(a for a, _ in group)
            against = f"{short(a.value)} against {short(b.value)}"
            parts.append(f"{_TOKENS[who]} {verb} than {_TOKENS[than]} in {place}{most} ({against})")
    if not parts and pairs:
        whether = f"whether {_TOKENS[one]} or {_TOKENS[two]} {verb}"
        return f"{whether} cannot be told from chance at this n"
    return ", and ".join(parts)


def sequences(found: list[SiteReading]) -> list[str]:
    """How much more alike one sequence is; what its mean leaves."""
    inside, residual = of(found, "intra_similarity_adjusted"), of(found, "rank_residual")
    out = []
    if inside:
        null = f"; by chance by {chance}" if (chance := nulls(inside)) else ""
        out.append(f"{_more_alike('Vectors of one sequence', inside)}{null}.")
    if residual:
        low = ends(residual)[1]
        least = f"at least {low.measured} in {where([low])}" if len(residual) > 1 else low.measured
        out.append(f"Of a sequence, {least} is left without its mean; 0 would be a collapse to one vector.")
    return out


def layers(found: list[SiteReading]) -> list[str]:
    """Where the arrangement changes most, and what is left of the first layer's."""
    previous, first = of(found, "cka_previous"), of(found, "cka_first")
    out = []
    if previous:
        top, low = ends(previous)
        if len(previous) > 1 and short(low.value) == short(top.value):
            out.append(f"From layer to layer the arrangement changes alike, CKA {short(low.value)}.")
        else:
            out.append(
                f"The arrangement changes most on the way into {where([low])}: "
                f"its CKA with the layer before is {short(low.value)}, without an interval."
            )
    if first:
        last = max(first, key=lambda r: r.place)
        out.append(f"The last place, {where([last])}, has a CKA of {short(last.value)} with the first layer.")
    return out


def sample(found: list[SiteReading]) -> list[str]:
    """Dimensions among neighbours; how evenly the sphere is filled."""
    near, even = of(found, "intrinsic_dimension"), of(found, "uniformity")
    out = []
    if near:
        null = f"; of an isotropic cloud of as many vectors {told}" if (told := nulls(near)) else ""
        out.append(f"Among nearest neighbours the dimension (TwoNN) is {_from_to(near)}{null}.")
    if even:
        null = f"{told} when they fill the sphere evenly and " if (told := nulls(even)) else ""
        out.append(f"The uniformity of the directions is {_from_to(even)}; it is {null}0 when all are one.")
    return out


def partition(found: list[SiteReading]) -> list[str]:
    """Without the scale first, then as the vectors are."""
    unit, raw = of(found, "partition_isotropy_unit"), of(found, "partition_isotropy")
    out = []
    for group, how in ((unit, "In units of the mean norm"), (raw, "With the norms as they are")):
        if group:
            random = f", where random directions give {told}" if (told := nulls(group)) else ""
            out.append(f"{how} the partition isotropy is {_from_to(group)}{random}.")
    return out


def comparison(readings: list[SiteReading]) -> str:
    """The rank correlations of each model and of all, with what they are worth."""
    out = []
    for drift in ("relative drift", "drift"):
        mine = [r for r in readings if r.measure == f"spearman_{drift.replace(' ', '_')}"]
        if not mine:
            continue
        each = [r for r in mine if r.model != "all models"]
        told = [f"{_correlated(r)} in {r.model}{_worth(r)}" for r in each]
        if len(each) > MOST_NAMED:
            top, low = ends(each)
            told = [f"{_correlated(low)} ({low.model}) to {_correlated(top)} ({top.model})"]
        told += [f"{_correlated(r)} over {r.model}{_worth(r)}" for r in mine if r not in each]
        out.append(f"Mean cosine and {drift}, Spearman’s r over layers: {listed(told)}.")
    if out:
        out.append(
            "Layers of one model are not independent, so p is nominal. When norms are equal the mean cosine "
            "is about the square of the relative drift: those two are no independent evidence of each other."
        )
    return "\n".join(out)


def _correlated(reading: SiteReading) -> str:
    return f"{reading.value:.2f}".replace("-", "−")


def _worth(reading: SiteReading) -> str:
    """The layers and the p of the row's note; a p of 0 is a limit of its formula and left out."""
    p = reading.note if reading.note.startswith("nominal p") and reading.note != "nominal p = 0" else ""
    return f" ({', '.join(filter(None, [f'{reading.n} layers', p]))})"


def generic(readings: list[SiteReading]) -> str:
    """The range of every measure, for a family that is not known here."""
    out = []
    for measure in unique(r.measure for r in readings):
        top, low = ends([r for r in readings if r.measure == measure])
        text = f"{measure.replace('_', ' ').capitalize()} is {short(low.value)}"
        out.append(f"{text}." if top is low else f"{text} ({low.site}) to {short(top.value)} ({top.site}).")
    return " ".join(out)


def _from_to(found: list[SiteReading]) -> str:
    top, low = ends(found)
    if len(found) == 1 or short(low.value) == short(top.value):
        return low.measured
    return f"{low.measured} in {where([low])} to {top.brief} in {where([top])}"
