"""The sentences on attention: what sharpens it, how much is the mean query, how queries and keys lie.

A part of the scores leads where the interval of its lead over the second part lies above 0.

The sink is carried by the mean query only where all three say so, each at the end of its interval that is
least in favour: the sink as it is, without the mean query, and without a random vector of the same length.
"""

from __future__ import annotations

import math
from collections import Counter

from isoscope.formatting import capital, listed, plain, short, spread, two
from isoscope.results.paired import paired
from isoscope.show.measures import ANATOMY
from isoscope.show.readings import SiteReading, numbered, of, unique
from isoscope.show.say.shapes import percent, ranged

WELL_ABOVE = 3.0  # a sink takes at least this many times the attention that chance gives one key,
LEAST_SINK = 0.05  # and exceeds chance by at least this share of the attention
LEFT = 0.1  # the sink is gone where at most this part of what was above chance is left without the mean query
KEPT = 0.5  # the sink stays where at least this part of what was above chance is left
STILL = 0.25  # the control stays where it moves less than this part of what subtracting the mean query does
CLEAN = 0.2  # a cross term further from 0 is reported: the drift share is then no clean split
TIMES_CHANCE = 2.0  # a drift share of less than this many times its null is not in the headline
NEARLY_EVEN = 0.95  # attention whose normalised entropy may exceed this is nearly even: a threshold of ours
_KIND = "attention_kind"


def anatomy(found: list[SiteReading]) -> list[str]:
    """Which part of the scores makes most of their variance, in layers and heads, and what makes sinks."""
    groups, out = _by_part(found), [_leading(found)]
    if mixed := groups.get("mixed"):
        out.append(f"In {numbered(mixed)} the largest share is indistinguishable from the second.")
    if even := groups.get("even"):
        entropy = _span(found, "normalised_entropy", even)
        out.append(f"Attention is nearly even in {numbered(even)} (normalised entropy {entropy}).")
    if bare := [r for r in of(found, _KIND) if not r.known]:
        out.append(f"No shares are reported in {numbered(bare)} ({listed(unique(r.note for r in bare))}).")
    heads = Counter(r.tag for r in found if r.measure == _KIND and r.head is not None and r.bounded)
    said = [f"{'no part' if tag == 'mixed' else tag} leads in {n}" for tag, n in heads.most_common()]
    out += [f"Of {heads.total()} heads, {listed(said)}."] if said else []
    both, alone = ("position_and_key", "position and key"), ("key", ANATOMY["key"][1])
    return [*filter(None, out), *_sinks(found, *(alone if find_sinks(found, "key")[0] else both))]


def _by_part(found: list[SiteReading]) -> dict[str, list[SiteReading]]:
    """Layers by the part that leads, or "mixed", "even" where attention nearly is, or "" with no interval."""
    entropies = {r.site: r.high if r.bounded else r.value for r in of(found, "normalised_entropy")}
    groups: dict[str, list[SiteReading]] = {}
    for r in of(found, _KIND):
        part = "even" if entropies.get(r.site, 0.0) >= NEARLY_EVEN else r.tag if r.above(0.0) else "mixed"
        groups.setdefault(part if r.bounded else "", []).append(r)
    return groups


def _leading(found: list[SiteReading]) -> str:
    """The parts that lead and where, with their shares; content is told where it does not lead."""
    groups, said, led = _by_part(found), list[str](), list[SiteReading]()
    for part, (measure, words) in ANATOMY.items():
        if own := groups.get(part):
            where = f" in {numbered(own)}" if len(groups) > 1 else ""
            said.append(f"{words}{where} ({part} share {_span(found, measure, own)})")
            led += own
    less = (
        "" if "content" in groups else f"; content makes {_span(found, 'content_share', led)}" if led else ""
    )
    cross = [one for one in led if (r := _at(found, "anatomy_cross_term", one)) and abs(r.value) > CLEAN]
    less += f"; cross terms are large in {numbered(cross)}, so no clean split" if cross else ""
    return f"The largest part of what sharpens attention comes from {listed(said)}{less}." if led else ""


def drift(found: list[SiteReading]) -> list[str]:
    """What part of the scores is drift, and what happens to sinks without the mean query."""
    out = []
    if shares := of(found, "drift_share"):
        top = max(shares, key=lambda r: r.value)
        aside = [f"95 % interval {percent(top.low)} to {percent(top.high)}"] if top.bounded else []
        aside += [f"chance {percent(top.null)}"] if math.isfinite(top.null) else []
        out += [f"{capital(_share(found, shares, aside))}.", *_without(found, top)]
    return [*out, *_sinks(found, "drift", "the mean query")]


def _sinks(found: list[SiteReading], part: str, what: str) -> list[str]:
    """The layers whose sink a part of the scores carries, and those where it stays without that part."""
    (carried, stays), out, ends = find_sinks(found, part), [], ("", f"_without_{part}", "_without_random")
    if carried:
        whole, left, control = (_span(found, f"sink_mass{end}", carried) for end in ends)
        chance = spread([r.null for r in carried], lambda value: short(value, 2))
        out.append(
            f"The sink of {numbered(carried)} is carried by {what}: the first token takes {whole}, "
            f"without {what} {left} (chance {chance}), without a random vector {control}."
        )
    if stays:
        whole, left, _ = (_span(found, f"sink_mass{end}", stays) for end in ends)
        out.append(f"In {numbered(stays)} most of the sink stays without {what} ({left} of {whole}).")
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


def find_sinks(found: list[SiteReading], part: str = "drift") -> tuple[list[SiteReading], list[SiteReading]]:
    """The layers whose sink this part carries, and those where it stays; neither without intervals."""
    carried, stays = [], []
    for sink in of(found, "sink_mass"):
        without, random = (_at(found, f"sink_mass_without_{what}", sink) for what in (part, "random"))
        if not (without and random and sink.bounded and without.bounded and random.bounded):
            continue
        if not sink.above(sink.null + max(LEAST_SINK, (WELL_ABOVE - 1) * sink.null)):
            continue
        left, kept = (sink.null + some * (sink.value - sink.null) for some in (LEFT, KEPT))
        if without.below(left) and random.above(kept):
            carried.append(sink)
        elif without.above(kept):
            stays.append(sink)
    return carried, stays


def same_side(found: list[SiteReading]) -> list[str]:
    """Whether queries and keys drift to the same side, by heads or else on average."""
    heads = [r for r in found if r.measure == "query_key_cosine" and r.head is not None and r.bounded]
    if heads:
        along, against = sum(r.above(0) for r in heads), sum(r.below(0) for r in heads)
        sides = f"the same side in {along} of {len(heads)} heads, to opposite sides in {against}"
        return [f"The mean query and the mean key point to {sides}."]
    cosines = of(found, "query_key_cosine")
    mean = "The cosine of the mean query and the mean key, averaged over heads, is"
    return [f"{mean} {ranged(cosines)}."] if cosines else []


def in_brief(readings: list[SiteReading]) -> str:
    """The sentence of the headline on the attention of one model at one step; empty where none is due."""
    found = [r for r in readings if r.kind == "attention" and r.head is None and r.known]
    shares = [r for r in of(found, "drift_share") if r.value > TIMES_CHANCE * r.null]
    carried, dissected = find_sinks(found)[0], of(found, _KIND)
    parts = [_share(found, shares, [])] if shares and not dissected else []
    if of(found, "normalised_entropy") and (lead := _leading(found)):
        parts = [lead.removesuffix(".")]
    parts += [f"the sink of {numbered(carried)} is carried by the mean query"] if carried else []
    return f"{capital('; '.join(parts))}." if parts else ""


def _span(found: list[SiteReading], measure: str, beside: list[SiteReading]) -> str:
    return spread([r.value for one in beside if (r := _at(found, measure, one))], plain)


def _at(found: list[SiteReading], measure: str, beside: SiteReading) -> SiteReading | None:
    return next((r for r in of(found, measure) if r.site == beside.site), None)
