"""The sentences on attention: how much of it is the mean query, and how queries and keys lie.

The sink is carried by the mean query only where all three say so, each at the end of its interval that is
least in favour: the sink as it is, without the mean query, and without a random vector of the same length.
"""

from __future__ import annotations

import math

from isoscope.formatting import plain, short, spread, two
from isoscope.results.paired import paired
from isoscope.show.readings import SiteReading, numbered, of
from isoscope.show.say.shapes import capital, percent, ranged

WELL_ABOVE = 3.0  # a sink takes at least this many times the attention that chance gives one key,
LEAST_SINK = 0.05  # and exceeds chance by at least this share of the attention
LEFT = 0.1  # the sink is gone where at most this part of what was above chance is left without the mean query
KEPT = 0.5  # the sink stays where at least this part of what was above chance is left
STILL = 0.25  # the control stays where it moves less than this part of what subtracting the mean query does
CLEAN = 0.2  # a cross term further from 0 is reported: the drift share is then no clean split
TIMES_CHANCE = 2.0  # a drift share of less than this many times its null is not in the headline


def drift(found: list[SiteReading]) -> list[str]:
    """What part of the scores is drift, and what happens to sinks without the mean query."""
    out = []
    if shares := of(found, "drift_share"):
        top = max(shares, key=lambda r: r.value)
        aside = [f"95 % interval {percent(top.low)} to {percent(top.high)}"] if top.bounded else []
        aside += [f"chance {percent(top.null)}"] if math.isfinite(top.null) else []
        out += [f"{capital(_share(found, shares, aside))}.", *_without(found, top)]
    carried, stays = find_sinks(found)
    if carried:
        ends = "", "_without_drift", "_without_random"
        whole, left, control = (_span(found, end, carried) for end in ends)
        chance = spread([r.null for r in carried], lambda value: short(value, 2))
        out.append(
            f"The sink of {numbered(carried)} is carried by the mean query: the first token takes {whole}, "
            f"without the mean query {left} (chance {chance}), without a random vector {control}."
        )
    if stays:
        values = f"{_span(found, '_without_drift', stays)} of {_span(found, '', stays)}"
        out.append(f"In {numbered(stays)} most of the sink stays without the mean query ({values}).")
    return out


def _share(found: list[SiteReading], shares: list[SiteReading], aside: list[str]) -> str:
    """The largest drift share; `aside` and a cross term that spoils it stand in brackets."""
    top = max(shares, key=lambda r: r.value)
    cross = _at(found, "cross_term", top)
    if cross and abs(cross.value) > CLEAN:
        aside = [*aside, f"cross term {cross.number}, so no clean split"]
    most, at = ("up to ", f" in layer {top.layer}") if len(shares) > 1 else ("", "")
    brackets = f" ({'; '.join(aside)})" if aside else ""
    return f"{most}{percent(top.value)} of the variance of scores within rows is drift{at}{brackets}"


def _without(found: list[SiteReading], top: SiteReading) -> list[str]:
    """The entropy in that layer without the mean query, and without the control."""
    ends = "", "_without_drift", "_without_random"
    whole, without, random = (_at(found, f"normalised_entropy{end}", top) for end in ends)
    if not whole or not without:
        return []
    old, new = two(whole.value, without.value)
    verb = "rises" if without.value > whole.value else "falls"
    changes = paired(whole, without).excludes(0)
    change = f"{verb} from {old} to {new}" if changes else f"is {new}, with it {old}"
    text = f"Without the mean query the normalised entropy there {change}"
    if random:
        moves = abs(random.value - whole.value) > STILL * abs(without.value - whole.value)
        verb = "goes to" if moves else "stays at"
        text += f"; without a random vector of the same length it {verb} {plain(random.value)}"
    return [f"{text}."]


def find_sinks(found: list[SiteReading]) -> tuple[list[SiteReading], list[SiteReading]]:
    """The layers whose sink the mean query carries, and those where it stays; neither without intervals."""
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


def same_side(found: list[SiteReading]) -> list[str]:
    """Whether queries and keys drift to the same side, by heads or else on average."""
    heads = [r for r in found if r.measure == "query_key_cosine" and r.head is not None and r.bounded]
    if heads:
        along, against = sum(r.low > 0 for r in heads), sum(r.high < 0 for r in heads)
        sides = f"the same side in {along} of {len(heads)} heads, to opposite sides in {against}"
        return [f"The mean query and the mean key point to {sides}."]
    cosines = of(found, "query_key_cosine")
    mean = "The cosine of the mean query and the mean key, averaged over heads, is"
    return [f"{mean} {ranged(cosines)}."] if cosines else []


def in_brief(readings: list[SiteReading]) -> str:
    """The sentence of the headline on the attention of one model at one step; empty where none is due."""
    found = [r for r in readings if r.kind == "attention" and r.head is None and r.known]
    shares = [r for r in of(found, "drift_share") if r.value > TIMES_CHANCE * r.null]
    carried = find_sinks(found)[0]
    parts = [_share(found, shares, [])] if shares else []
    parts += [f"the sink of {numbered(carried)} is carried by the mean query"] if carried else []
    return f"{capital('; '.join(parts))}." if parts else ""


def _span(found: list[SiteReading], end: str, sinks: list[SiteReading]) -> str:
    return spread([r.value for sink in sinks if (r := _at(found, f"sink_mass{end}", sink))], plain)


def _at(found: list[SiteReading], measure: str, beside: SiteReading) -> SiteReading | None:
    return next((r for r in of(found, measure) if r.site == beside.site), None)
