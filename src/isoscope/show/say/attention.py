"""The sentences on attention: how sharp it is, what of that is the mean query, and how queries and keys lie.

Each takes the readings of one kind of attention, of one model at one step.
Decided here: the sink is called carried by the mean query only where all three say so, each at the end of
its interval that is least in favour: with the mean query it is well above chance, without it hardly anything
above chance is left, and without a random vector of the same length most of it is still there.
"""

from __future__ import annotations

import math

from isoscope.formatting import listed, plain, short, spread, two
from isoscope.show.readings import SiteReading, ends, numbered, of
from isoscope.show.say.shapes import joined, topmost

WELL_ABOVE = 3.0
"""A sink takes at least so many times what chance gives one key,"""

LEAST_SINK = 0.05
"""and at least so much of the attention more than chance: less is no sink, however few chance gives."""

LEFT = 0.1
"""Without the mean query at most so much of what was above chance is left: the sink is gone."""

KEPT = 0.5
"""Without the random vector, or where the sink is not carried, at least so much of it is left."""

STILL = 0.25
"""The control stays where it moves less than this part of what taking the mean query away does."""

CLEAN = 0.2
"""A cross term further from 0 is told: the drift share is then no clean split."""

TIMES_CHANCE = 2.0
"""A drift share of less than so many times its null is not told from chance."""


def drift(found: list[SiteReading]) -> list[str]:
    """What part of the scores is drift, and what becomes of sinks without the mean query."""
    out = []
    if shares := of(found, "drift_share"):
        top, most = topmost(shares, "Up to ")
        at = f" in layer {top.layer}" if most else ""
        out.append(f"{most}{_share(top)}{at}{_worth(found, top)}{_without(found, top)}.")
    carried, stays = find_sinks(found)
    if carried:
        without, random = (
            [r for sink in carried if (r := _at(found, f"sink_mass_without_{what}", sink))]
            for what in ("drift", "random")
        )
        whole, left, control = (_span(group) for group in (carried, without, random))
        chance = spread([r.null for r in carried], lambda value: short(value, 2))
        out.append(
            f"The sink of {numbered(carried)} is carried by the mean query: the first token takes {whole}, "
            f"without the mean query {left} (chance {chance}), without a random vector {control}."
        )
    if stays:
        kept = [r for sink in stays if (r := _at(found, "sink_mass_without_drift", sink))]
        values = f"{_span(kept)} of {_span(stays)}"
        out.append(f"In {numbered(stays)} most of the sink stays without the mean query ({values}).")
    return out


def _span(found: list[SiteReading]) -> str:
    return spread([r.value for r in found], plain)


def _share(top: SiteReading) -> str:
    return f"{percent(top.value)} of the variance of the scores within rows is drift"


def _worth(found: list[SiteReading], top: SiteReading) -> str:
    """The interval and the null of a drift share, and its cross term where that spoils it."""
    parts = [f"95 % interval {percent(top.low)} to {percent(top.high)}"] if top.bounded else []
    parts += [f"by chance {percent(top.null)}"] if math.isfinite(top.null) else []
    parts += _unclean(found, top)
    return f" ({'; '.join(parts)})" if parts else ""


def _unclean(found: list[SiteReading], top: SiteReading) -> list[str]:
    """The cross term in that layer, where the drift share is no clean split for it."""
    cross = _at(found, "cross_term", top)
    unclean = cross is not None and abs(cross.value) > CLEAN
    return [f"cross term {cross.number}, so no clean split"] if cross and unclean else []


def _without(found: list[SiteReading], top: SiteReading) -> str:
    """What entropy does in that layer without the mean query, and without the control."""
    whole, without, random = (
        _at(found, f"normalised_entropy{what}", top) for what in ("", "_without_drift", "_without_random")
    )
    if not whole or not without:
        return ""
    old, new = two(whole.value, without.value)
    verb = "rises" if without.value > whole.value else "falls"
    change = f"{verb} there from {old} to {new}" if without.apart(whole) else f"there is {new}, with it {old}"
    text = f"; without the mean query the normalised entropy {change}"
    if random:
        moves = abs(random.value - whole.value) > STILL * abs(without.value - whole.value)
        verb = "goes to" if moves else "stays at"
        text += f", without a random vector of the same length it {verb} {plain(random.value)}"
    return text


def find_sinks(found: list[SiteReading]) -> tuple[list[SiteReading], list[SiteReading]]:
    """The layers whose sink the mean query carries, and those where it stays.

    A layer is in neither where an interval or a control is missing.
    """
    carried, stays = [], []
    for sink in of(found, "sink_mass"):
        without, random = (_at(found, f"sink_mass_without_{what}", sink) for what in ("drift", "random"))
        if not (without and random and sink.bounded and without.bounded and random.bounded):
            continue
        if not sink.low - sink.null > max(LEAST_SINK, (WELL_ABOVE - 1) * sink.null):
            continue
        excess = sink.value - sink.null
        if without.high - sink.null <= LEFT * excess and random.low - sink.null >= KEPT * excess:
            carried.append(sink)
        elif without.low - sink.null >= KEPT * excess:
            stays.append(sink)
    return carried, stays


def queries(found: list[SiteReading]) -> list[str]:
    """How far queries and keys drift, and whether they drift to the same side."""
    parts = []
    for side in ("query", "key"):
        if drifts := of(found, f"{side}_relative_drift"):
            top, most = topmost(drifts)
            at = f"layer {top.layer}, " if most else ""
            parts.append(f"the mean {side} is {most}{top.number} ({at}by chance {short(top.null, 2)})")
    out = [f"In units of the mean length, {listed(parts)}."] if parts else []
    heads = [r for r in found if r.measure == "query_key_cosine" and r.head is not None and r.bounded]
    if heads:
        along, against = sum(r.low > 0 for r in heads), sum(r.high < 0 for r in heads)
        out.append(
            f"In {along} of {len(heads)} heads the mean query and the mean key point to the same side, "
            f"in {against} to opposite sides."
        )
    elif cosines := of(found, "query_key_cosine"):
        top, low = ends(cosines)
        text = f"{low.measured} in layer {low.layer} to {top.brief} in layer {top.layer}"
        text = text if len(cosines) > 1 else top.measured
        out.append(f"The cosine of the mean query and the mean key, averaged over heads, is {text}.")
    return out


def in_brief(readings: list[SiteReading]) -> str:
    """The sentence of the headline on the attention of one model at one step; empty where none is due."""
    found = [r for r in readings if r.kind == "attention" and r.head is None and r.known]
    parts = []
    if shares := [r for r in of(found, "drift_share") if r.value > TIMES_CHANCE * r.null]:
        top, most = topmost(shares)
        aside = [*([f"layer {top.layer}"] if most else []), *_unclean(found, top)]
        parts.append(f"{most}{_share(top)}" + (f" ({'; '.join(aside)})" if aside else ""))
    if carried := find_sinks(found)[0]:
        parts.append(f"the sink of {numbered(carried)} is carried by the mean query")
    return "".join(joined(parts))


def percent(value: float) -> str:
    """A share as a sentence has it: two digits.

    >>> percent(0.4092), percent(0.00095)
    ('41 %', '0.095 %')
    """
    return f"{short(100 * value, 2)} %"


def _at(found: list[SiteReading], measure: str, beside: SiteReading) -> SiteReading | None:
    """The reading of this measure in the same layer."""
    return next((r for r in of(found, measure) if r.site == beside.site), None)
