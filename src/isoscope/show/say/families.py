"""The sentences of each family, from readings that have a value.

Where there are several steps they speak of the last one, and where there are several models one
sentence of each, up to `MOST_TOLD`. A sentence is left out where its measure is not there.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from isoscope.formatting import short
from isoscope.show.readings import ATTENTION, PLACES, SiteReading, ends, models, nulls, of, steps, where
from isoscope.show.say import attention as attended
from isoscope.show.say import parts
from isoscope.show.say import weights as weighed

MOST_TOLD = 3
"""So many models are told in turn; the figure shows the others."""


def _each(
    write: Callable[[list[SiteReading]], list[str]], *, every_site: bool = False
) -> Callable[[list[SiteReading]], str]:
    """Say it of each model at its last step, with the model and the step in front where there are several.

    `every_site` is for weights: others speak of clouds and attention only, whatever else has their measures.
    """

    def told(readings: list[SiteReading]) -> str:
        sited = [r for r in readings if every_site or r.kind in (*PLACES, *ATTENTION)]
        names, out = models(sited), []
        for name in names[:MOST_TOLD]:
            own = [r for r in sited if r.model == name]
            last = steps(own)[-1] if len(steps(own)) > 1 else None
            said = write([r for r in own if last is None or r.step == last])
            place = f"{name}, step {last:,}: " if last is not None else f"{name}: "
            if said and (len(names) > 1 or last is not None):
                before = place if len(names) > 1 else f"At step {last:,}: "
                said[0] = before + said[0][0].lower() + said[0][1:]
            out.append(" ".join(said if len(names) == 1 else said[:1]))
        if any(out) and len(names) > MOST_TOLD:
            rest = len(names) - MOST_TOLD
            out.append(f"The figure shows {rest if rest > 1 else 'one'} more.")
        return "\n".join(filter(None, out))

    return told


def _directions(found: list[SiteReading]) -> list[str]:
    between, bare = of(found, "mean_cosine_between"), of(found, "mean_cosine")
    if not between:
        text = "There is only the mean cosine over all pairs, which pairs within one sequence inflate, "
        return [f"{text}so no claim hangs on it."] if bare else []
    top, low = ends(between)
    null = short(0.0 if math.isnan(top.null) else top.null)
    text = "The mean cosine between sequences"
    if len(between) > 1:
        text += f" lies between {low.measured} in {where([low])} and {top.brief} in {where([top])}"
    else:
        text += f" is {top.measured}"
    out = [f"{text}; an isotropic cloud has {null}."]
    whole = [r for r in bare if r.site == top.site]
    rogue = [r for r in of(found, "rogue_contribution") if r.site == top.site]
    if whole:
        there = f" {where([top])} reads" if len(between) > 1 else " it reads"
        part = f"Over all pairs{there} {short(whole[0].value)}"
        if top.bounded and whole[0].value > top.high:
            part += ", inflated by pairs within one sequence, which are alike"
        if rogue and whole[0].value > 0:
            which = f" ({rogue[0].note})" if rogue[0].note else ""
            share = f"{short(rogue[0].value)} of the {short(whole[0].value)}"
            part += f"; the single largest dimension{which} makes {share}"
        out.append(f"{part}.")
    return out


def _drift(found: list[SiteReading]) -> list[str]:
    drifts, norms = of(found, "relative_drift"), of(found, "mean_norm")
    out = []
    told = [r for r in drifts if r.bounded and r.low > r.null]
    untold = [r for r in drifts if r.bounded and r.low <= r.null]
    if told:
        top = max(told, key=lambda r: r.value)
        at = f", in {where([top])}" if len(drifts) > 1 else ""
        most = "up to " if len(drifts) > 1 else ""
        text = (
            f"The length of the mean vector is {most}{top.measured} of the mean length{at}; "
            f"a cloud centred on the origin shows {short(top.null)} at this n"
        )
        rest = [r for r in drifts if r not in told]
        out.append(text + (f"; in {where(rest)} no drift can be told from chance." if rest else "."))
    elif untold:
        top = max(untold, key=lambda r: r.value)
        most = "at most " if len(untold) > 1 else ""
        out.append(
            f"No drift can be told from chance at this n: the relative drift is {most}{top.measured}, "
            f"and a cloud centred on the origin shows {short(top.null)}."
        )
    elif drifts:
        top, low = ends(drifts)
        text = f"The relative drift is {short(low.value)} ({low.site}) to {short(top.value)} ({top.site})"
        text = text if len(drifts) > 1 else f"The relative drift is {short(top.value)}"
        lacking = "a null" if all(r.bounded for r in drifts) else "an interval"
        out.append(f"{text}; without {lacking} it cannot be told from chance.")
    if norms:
        top, low = ends(norms)
        text = f"The mean length of a vector is {short(low.value)}"
        out.append(text + (f" ({low.site}) to {short(top.value)} ({top.site})." if len(norms) > 1 else "."))
    return out


def _spectrum(found: list[SiteReading]) -> list[str]:
    split, whole = of(found, "participation_ratio_split"), of(found, "participation_ratio")
    ratios, name = (split, "split-half participation ratio") if split else (whole, "participation ratio")
    out = []
    if ratios:
        top, low = ends(ratios)
        null = f", where an isotropic cloud shows {told}" if (told := nulls(ratios)) else ""
        if len(ratios) > 1:
            out.append(
                f"The variance spreads over as few as {low.measured} directions in {where([low])} "
                f"and as many as {top.brief} in {where([top])} ({name}){null}."
            )
        else:
            out.append(f"The variance spreads over {low.measured} directions ({name}){null}.")
    shares = of(found, "top_share")
    if shares:
        top = max(shares, key=lambda r: r.value)
        at = f" in {where([top])}" if len(shares) > 1 else ""
        most = "at most " if len(shares) > 1 else ""
        null = (
            f"; in an isotropic cloud it holds {short(100 * top.null)} %" if math.isfinite(top.null) else ""
        )
        out.append(f"One single direction holds {most}{short(100 * top.value)} % of the variance{at}{null}.")
    return out


def _training(readings: list[SiteReading]) -> str:
    out = []
    losses = [r for r in readings if r.measure == "loss" and r.step is not None]
    for name in models(losses)[:MOST_TOLD]:
        own = sorted((r for r in losses if r.model == name), key=lambda r: r.step or 0)
        first, last, best = own[0], own[-1], min(own, key=lambda r: r.value)
        subject = f"The loss of {name}" if len(models(losses)) > 1 else "The loss"
        if len(own) == 1:
            out.append(f"{subject} is {short(first.value)} at step {first.step:,}.")
            continue
        turn = (
            f"; the lowest is {short(best.value)} at step {best.step:,}" if best not in (first, last) else ""
        )
        begin, end = (f"{short(r.value)} at step {r.step:,}" for r in (first, last))
        out.append(f"{subject} goes from {begin} to {end}{turn}.")
    return " ".join(out)


def _health(readings: list[SiteReading]) -> str:
    said = {
        "not_finite": ("vector is", "vectors are", "not finite (NaN or infinite)"),
        "zero_vectors": ("vector is", "vectors are", "zero and so without direction"),
        "not_finite_rows": ("query has", "queries have", "scores that are not finite"),
        "blind_rows": ("query is", "queries are", "without a key to see"),
    }
    out = []
    for measure, (one, many, words) in said.items():
        bad = [r for r in readings if r.measure == measure and r.value > 0 and r.head is None]
        for name in models(bad):
            own = [r for r in bad if r.model == name]
            most = max(r.value for r in own)
            count = f"{'up to ' if len(own) > 1 else ''}{short(most)}"
            subject = one if most == 1 else many
            out.append(f"In {where(own)} of {name}, {count} {subject} {words}, and left out.")
    return " ".join(out)


SENTENCES: dict[str, Callable[[list[SiteReading]], str]] = {
    "directions": _each(_directions),
    "drift": _each(_drift),
    "spectrum": _each(_spectrum),
    "attention": _each(attended.attention),
    "drift in attention": _each(attended.drift),
    "queries": _each(attended.queries),
    "dimensions": _each(parts.dimensions),
    "tokens": _each(parts.tokens),
    "sequences": _each(parts.sequences),
    "layers": _each(parts.layers),
    "sample": _each(parts.sample),
    "partition": _each(parts.partition),
    "query_key": _each(weighed.localisation, every_site=True),
    "vocabulary": _each(weighed.vocabulary, every_site=True),
    "norm": _each(weighed.norm, every_site=True),
    "comparison": parts.comparison,
    "training": _training,
    "health": _health,
}
