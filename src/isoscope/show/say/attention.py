"""The sentences on attention: how sharp it is, what of that is the mean query, and how queries and keys lie.

Each takes the readings of one model at one step; cross-attention is told apart, after self-attention.
Decided here: the sink is called carried by the mean query only where all three say so, each at the end of
its interval that is least in favour: with the mean query it is well above chance, without it hardly anything
above chance is left, and without a random vector of the same length most of it is still there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from isoscope.formatting import listed, plain, short, spread, two
from isoscope.show.readings import ATTENTION, SiteReading, ends, numbered, of

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


@dataclass(frozen=True)
class Sinks:
    """The layers that have a sink: those whose sink the mean query carries, and those where it stays."""

    carried: tuple[SiteReading, ...]
    stays: tuple[SiteReading, ...]


def _by_kind(write: Callable[[list[SiteReading]], list[str]]) -> Callable[[list[SiteReading]], list[str]]:
    def told(found: list[SiteReading]) -> list[str]:
        own, cross = (write([r for r in found if r.kind == kind]) for kind in ATTENTION)
        if own and cross:
            cross[0] = f"Cross-attention: {cross[0][0].lower()}{cross[0][1:]}"
        return [*own, *cross]

    return told


def _attention(found: list[SiteReading]) -> list[str]:
    entropy, sink = _of(found, "normalised_entropy"), _of(found, "sink_mass")
    out = []
    if entropy:
        top, low = ends(entropy)
        text = f"The normalised entropy of attention is {top.measured}"
        if len(entropy) > 1:
            text = "The normalised entropy of attention lies between "
            text += f"{low.measured} in {numbered([low])} and {top.brief} in {numbered([top])}"
        out.append(f"{text}; even attention has 1.")
    if sink:
        top = ends(sink)[0]
        at = f", in {numbered([top])}" if len(sink) > 1 else ""
        most = "up to " if len(sink) > 1 else ""
        chance = f"; chance gives one key {short(top.null)}" if math.isfinite(top.null) else ""
        out.append(f"The first token takes {most}{top.measured} of a query’s attention{at}{chance}.")
    return out


def _drift(found: list[SiteReading]) -> list[str]:
    shares = _of(found, "drift_share")
    out = []
    if shares:
        top = ends(shares)[0]
        at = f" in {numbered([top])}" if len(shares) > 1 else ""
        most = "Up to " if len(shares) > 1 else ""
        out.append(f"{most}{_share(top)}{at}{_worth(found, top)}{_without(found, top)}.")
    sinks = find_sinks(found)
    if sinks.carried:
        out.append(f"{_carried(found, list(sinks.carried))}.")
    if sinks.stays:
        left = [_at(found, "sink_mass_without_drift", r) for r in sinks.stays]
        values = spread([r.value for r in left if r], plain)
        values += f" of {spread([r.value for r in sinks.stays], plain)}"
        out.append(f"In {numbered(sinks.stays)} most of the sink stays without the mean query ({values}).")
    return out


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
    if cross is None or abs(cross.value) <= CLEAN:
        return []
    return [f"cross term {short(cross.value)}, so no clean split"]


def _without(found: list[SiteReading], top: SiteReading) -> str:
    """What entropy does in that layer without the mean query, and without the control."""
    whole = _at(found, "normalised_entropy", top)
    without, random = (_at(found, f"normalised_entropy_without_{what}", top) for what in ("drift", "random"))
    if not whole or not without:
        return ""
    old, new = two(whole.value, without.value)
    if without.low > whole.high or without.high < whole.low:
        verb = "rises" if without.value > whole.value else "falls"
        text = f"; without the mean query the normalised entropy {verb} there from {old} to {new}"
    else:
        text = f"; without the mean query the normalised entropy there is {new}, with it {old}"
    if random:
        moves = abs(random.value - whole.value) > STILL * abs(without.value - whole.value)
        verb = "goes to" if moves else "stays at"
        text += f", without a random vector of the same length it {verb} {plain(random.value)}"
    return text


def find_sinks(found: list[SiteReading]) -> Sinks:
    """The layers with a sink, by what becomes of it; none where an interval or a control is missing."""
    carried, stays = [], []
    for sink in _of(found, "sink_mass"):
        without, random = (_at(found, f"sink_mass_without_{what}", sink) for what in ("drift", "random"))
        if not (without and random and sink.bounded and without.bounded and random.bounded):
            continue
        above = sink.low - sink.null
        if not above > max(LEAST_SINK, (WELL_ABOVE - 1) * sink.null):
            continue
        excess = sink.value - sink.null
        if without.high - sink.null <= LEFT * excess and random.low - sink.null >= KEPT * excess:
            carried.append(sink)
        elif without.low - sink.null >= KEPT * excess:
            stays.append(sink)
    return Sinks(tuple(carried), tuple(stays))


def _carried(found: list[SiteReading], sinks: list[SiteReading]) -> str:
    without, random = (
        [r for sink in sinks if (r := _at(found, f"sink_mass_without_{what}", sink))]
        for what in ("drift", "random")
    )
    masses = (spread([r.value for r in group], plain) for group in (sinks, without, random))
    whole, left, control = masses
    chance = spread([r.null for r in sinks], lambda value: short(value, 2))
    text = f"The sink of {numbered(sinks)} is carried by the mean query: the first token takes {whole}, "
    text += f"without the mean query {left} (chance {chance}), without a random vector {control}"
    return text


def _queries(found: list[SiteReading]) -> list[str]:
    out, parts = [], []
    for side in ("query", "key"):
        if drifts := _of(found, f"{side}_relative_drift"):
            top = ends(drifts)[0]
            most, at = ("up to ", f"{numbered([top])}, ") if len(drifts) > 1 else ("", "")
            parts.append(f"the mean {side} is {most}{short(top.value)} ({at}by chance {short(top.null, 2)})")
    if parts:
        out.append(f"In units of the mean length, {listed(parts)}.")
    heads = [r for r in found if r.measure == "query_key_cosine" and r.head is not None and r.bounded]
    cosines = _of(found, "query_key_cosine")
    if heads:
        along, against = sum(r.low > 0 for r in heads), sum(r.high < 0 for r in heads)
        out.append(
            f"In {along} of {len(heads)} heads the mean query and the mean key point to the same side, "
            f"in {against} to opposite sides."
        )
    elif cosines:
        top, low = ends(cosines)
        text = f"{low.measured} in {numbered([low])} to {top.brief} in {numbered([top])}"
        text = text if len(cosines) > 1 else top.measured
        out.append(f"The cosine of the mean query and the mean key, averaged over heads, is {text}.")
    return out


def in_brief(readings: list[SiteReading]) -> str:
    """The sentence of the headline on the attention of one model at one step; empty where none is due."""
    found = [r for r in readings if r.kind == "attention" and r.head is None and r.known]
    shares = [r for r in _of(found, "drift_share") if r.value > TIMES_CHANCE * r.null]
    parts = []
    if shares:
        top = ends(shares)[0]
        most = "up to " if len(shares) > 1 else ""
        aside = [*([numbered([top])] if len(shares) > 1 else []), *_unclean(found, top)]
        parts.append(f"{most}{_share(top)}" + (f" ({'; '.join(aside)})" if aside else ""))
    if carried := find_sinks(found).carried:
        parts.append(f"the sink of {numbered(carried)} is carried by the mean query")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if parts else ""


def percent(value: float) -> str:
    """A share as a sentence has it: two digits.

    >>> percent(0.4092), percent(0.00095)
    ('41 %', '0.095 %')
    """
    return f"{short(100 * value, 2)} %"


def _of(found: list[SiteReading], measure: str) -> list[SiteReading]:
    return of(found, measure, ATTENTION)


def _at(found: list[SiteReading], measure: str, beside: SiteReading) -> SiteReading | None:
    """The reading of this measure in the same layer."""
    return next((r for r in _of(found, measure) if r.site == beside.site), None)


attention, drift, queries = _by_kind(_attention), _by_kind(_drift), _by_kind(_queries)
