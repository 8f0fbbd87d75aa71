"""What advice says: a table of spaces, what they look like, what makes them so, and what to do.

Which case it is says `Findings.verdict`; tables here have a text for each. Every sentence comes with the
readings it rests on. No sentence says that a repair helps: only a task shows that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from isoscope.formatting import listed, plain, short, two
from isoscope.kinds.advise import findings as limits
from isoscope.kinds.advise.findings import NONE, Findings, Space
from isoscope.results.paired import paired
from isoscope.show.readings import SiteReading
from isoscope.show.say.shapes import WEAK, percent

PARTS = {
    "space": "What it looks like", "cause": "What makes it so", "do": "What to do",
    "unknown": "What is not known",
}  # fmt: skip
HEADLINES = {
    "no interval": "The mean cosine is {mean}; without an interval nothing is advised.",
    "around 0": "Nothing to repair in the scale of cosines: nine in ten lie between {lie}.",
    "unclear": "Whether there is anything to repair cannot be told from {n} vectors: the mean cosine is "
    "{mean}.",
    "groups": "Nine in ten cosines lie between {lie}: some pairs point alike and others do not, so their "
    "mean, {value}, says little.",
    "one direction": "Nine in ten cosines lie between {lie} because of one common direction. Subtracting the "
    "mean moves them to between {after}{keeps}.",
    "several causes": "Nine in ten cosines lie between {lie}; subtracting the mean alone does not bring them "
    "around 0.",
    "cone": "Nine in ten cosines lie between {lie}; whether subtracting the mean brings them around 0 is not "
    "known.",
}
CAUSES = {
    "groups": "It is not one cone: some pairs point alike and others do not, as where vectors come in "
    "groups. {centred}.",
    "one direction": "The cause is one common direction, the mean vector ({drift} of a vector's length). "
    "{centred}.",
    "several causes": "The mean vector is not the only cause. {centred}.",
    "cone": "Whether the mean vector is the only cause cannot be told at this n. {centred}.",
}
DO = {
    "no interval": "Whether there is anything to repair cannot be told: the mean cosine is {mean} and has no "
    "interval. Use more vectors.",
    "around 0": "Nothing to repair in the scale of cosines: the mean cosine is {mean}, below {weak}.",
    "unclear": "Whether there is anything to repair cannot be told: the mean cosine is {mean}, and its "
    "interval includes {weak}. Use more vectors.",
    "groups": "Do not judge by the mean cosine. First see which pairs are alike, and whether they should be.",
    "one direction": "Subtract the mean (`isoscope repair … --with centre`){keeps}. A threshold on cosines "
    "must be chosen anew: one that 5 % of pairs pass is {old} now and {new} then.",
}
Lines = Iterator[tuple[str, Sequence[SiteReading]]]
"""Sentences, each with the readings behind it."""


@dataclass(frozen=True)
class Said:
    """A sentence, the part of the page it belongs to, and the rows behind it (``model/measure``)."""

    part: str
    text: str
    rows: tuple[str, ...]


def advice(found: Findings) -> list[Said]:
    """All that is said, part by part."""
    said = []
    for part, write in WRITERS.items():
        for text, readings in write(found):
            sites = {
                r: f"dimension.{r.layer}/" if r.kind == "dimension" else "" for r in readings if r.measure
            }
            rows = dict.fromkeys(f"{r.model}/{site}{r.measure}" for r, site in sites.items())
            said.append(Said(part, text, tuple(rows)))
    return said


def headline(found: Findings) -> str:
    """One or two sentences on top of the page."""
    return _filled(HEADLINES[found.verdict], found)


def _filled(text: str, found: Findings) -> str:
    """A text of the tables with the numbers of the vectors as they are, and after subtracting the mean."""
    before, centred = found.before, found.repaired("centre")
    kept = f", which keeps {per_cent(centred.kept)} of the ten nearest neighbours"
    old, new = (space.quantiles.get(95, NONE).value for space in (before, centred))
    return text.format(
        lie=between(before), mean=before.cosine.measured, value=plain(before.cosine.value),
        n=before.cosine.n, drift=short(before.drift.value), weak=plain(WEAK), after=between(centred),
        keeps=kept if centred.kept.known else "", old=plain(old), new=plain(new),
        centred="After subtracting a mean estimated on held-out vectors, the mean cosine is "
        f"{centred.cosine.measured}",
    )  # fmt: skip


def describe(found: Findings) -> Lines:
    """Where cosines lie, how variance spreads, lengths, copies, hubs, and what could not be used."""
    before = found.before
    text = f"Nine in ten cosines lie between {between(before)}; their mean is {before.cosine.measured}."
    yield f"{text} Without a common direction it is 0.", [before.cosine, *_ends(before)]
    rank, score = before.rank, before.isoscore
    if rank.known:
        narrow = rank.value < limits.NARROW * rank.null
        words = f"over few of the {found.width} dimensions" if narrow else "over many dimensions"
        words += ", unevenly" if found.uneven else ""
        ranks = f"effective rank {short(rank.value)}, {short(rank.null)} in an isotropic cloud"
        scores = f"IsoScore {short(score.value)}, {short(score.null)} in an isotropic cloud"
        yield f"About their mean, the vectors spread {words} ({ranks}; {scores}).", [rank, score]
    varies, norm = before.norm_variation, before.norm
    if varies.value < limits.SAME_LENGTH:
        text = f"All vectors have the same length, {short(norm.value)}: dot products rank as cosines do. "
        yield f"{text}A repair changes lengths, so normalise again after it.", [varies, norm]
    elif varies.value > limits.UNLIKE_LENGTH:
        text = f"Lengths vary by {percent(varies.value)} of their mean, {short(norm.value)}: dot products "
        yield f"{text}and cosines rank differently. This advice is about cosines.", [varies, norm]
    if before.copies.value >= limits.MANY_COPIES:
        text = f"{percent(before.copies.value)} of the vectors are copies of another: remove them from an "
        text += "index, where they are each other's nearest neighbours. Here each counts once."
        yield text, [before.copies]
    if before.anti_hubs.above(limits.MANY_ANTI_HUBS):
        text = f"{per_cent(before.anti_hubs)} of the vectors are among the ten nearest neighbours of none."
        yield text, [before.anti_hubs]
    for count, total, what in (
        (before.left_out, f"{before.left_out.n} vectors", "have NaN or Inf and are left out"),
        (before.no_direction, f"{before.no_direction.n} vectors", "are zero and are left out"),
        (before.constant, f"{found.width} dimensions", "are the same in every vector"),
    ):
        if 0 < count.value < math.inf:
            yield f"{int(count.value)} of {total} {what}.", [count]


def explain(found: Findings) -> Lines:
    """Whether the mean, few dimensions or some tokens make the cosines what they are."""
    before, centred = found.before, found.repaired("centre")
    if found.verdict in CAUSES and centred.name:
        readings = [before.cosine, before.drift, centred.cosine, *_ends(before)]
        yield _filled(CAUSES[found.verdict], found), readings
    few = found.dimensions[: found.rogue or limits.MOST_ROGUE]
    if found.crowded and len(found.dimensions) >= limits.MOST_ROGUE:
        joined, names = few[-1].joined, listed([str(each.which) for each in few])
        carry = f"{per_cent(joined)} of the mean cosine; the largest of a random direction carry "
        carry += f"{percent(joined.null)}."
        if found.rogue:
            yield f"Few dimensions ({names}) carry {carry}", [each.joined for each in few]
        elif joined.below(limits.ROGUE_SHARE):
            text = f"No few dimensions are the cause: the largest three ({names}) carry {carry}"
            yield text, [each.joined for each in few]
    yield from _tokens(found)


def _tokens(found: Findings) -> Lines:
    """Which tokens point alike, and what pooling does."""
    of, every, pooled = found.tokens, found.all_tokens.cosine, found.before.cosine
    for more, less, who, than in (
        (of.frequent, of.rarer, "Frequent tokens", "rarer ones"),
        (of.rarer, of.frequent, "Rarer tokens", "frequent ones"),
        (every, of.cosine, "All tokens", "those without special ones and the first position"),
        (of.cosine, every, "Tokens without special ones and the first position", "all of them"),
    ):
        if paired(less, more).above(0) and more.value - less.value > limits.APART:
            text = f"{who} point more alike than {than}: mean cosine {more.measured} against {less.measured}."
            yield text, [more, less]
    if found.pool == "mean" and found.crowded and paired(every, pooled).above(0):
        text = f"Pooling adds to it: the mean cosine is {every.measured} for tokens, {pooled.measured} for "
        yield f"{text}means over a text, which keep what its tokens share.", [every, pooled]


def recommend(found: Findings) -> Lines:
    """What to do about the mean, about few dimensions, and about an uneven spread."""
    before, centred = found.before, found.repaired("centre")
    if found.verdict in DO:
        ends = [space.quantiles.get(95, NONE) for space in (before, centred)]
        yield _filled(DO[found.verdict], found), [before.cosine, centred.cosine, *ends, centred.kept]
    else:
        yield _enough(found), [before.cosine, *(r for each in found.after for r in (each.cosine, each.kept))]
    dropped = found.repaired("rogue")
    if found.rogue and paired(before.cosine, dropped.cosine).below(0):
        text = f"Setting these dimensions to 0 (`{dropped.name}`) brings the mean cosine to "
        text += f"{dropped.cosine.measured}. First find out what they stand for."
        yield text, [found.dimensions[found.rogue - 1].joined, dropped.cosine]
    white = found.repaired("whiten")
    if found.uneven and white.isoscore.value > before.isoscore.value:
        text = f"Whitening (`{white.name}`) would make the spread more even (IsoScore "
        text += f"{short(before.isoscore.value)} to {short(white.isoscore.value)})"
        text += f" and keep {per_cent(white.kept)} of the ten nearest neighbours" if white.kept.known else ""
        yield f"{text}. Try it on a task first.", [before.isoscore, white.isoscore, white.kept]


def _enough(found: Findings) -> str:
    """The repairs that are enough where subtracting the mean is not, or is not known to be."""
    best, near = found.gentlest, f"within {plain(WEAK)} of 0"
    if not found.enough:
        return f"No repair that was tried certainly brings the mean cosine {near}."
    names = listed([f"`{each.name}`" for each in best or found.enough])
    if not best:
        return f"The mean cosine comes {near} with {names}; how many neighbours stay is not known."
    kept = per_cent(best[0].kept) if len(best) == 1 else f"about {percent(best[0].kept.value)}"
    return f"Of the repairs that bring the mean cosine {near}, most neighbours stay with {names}: {kept}."


def not_known(found: Findings) -> Lines:
    """What no geometry shows."""
    kept = [each.kept for each in found.after if each.kept.known]
    text = "Geometry does not show whether a repair helps your task: `isoscope impact` measures that, with "
    text += "pairs, labels or queries of yours."
    if kept:
        text += f" Neighbours were searched among {kept[0].n} vectors; among more vectors, more change."
    yield text, kept


def between(space: Space) -> str:
    """Where nine in ten cosines lie, as after "between"."""
    return " and ".join(two(*(space.quantiles.get(end, NONE).value for end in (5, 95))))


def per_cent(number: SiteReading) -> str:
    """A share with its interval, as per cents: 81 % (80 to 83 %)."""
    ends = (f"{100 * end:.0f}" for end in (number.low, number.high))
    return percent(number.value) + (" ({} to {} %)".format(*ends) if number.bounded else "")


def _ends(space: Space) -> tuple[SiteReading, SiteReading]:
    return space.quantiles[5], space.quantiles[95]


WRITERS = {"space": describe, "cause": explain, "do": recommend, "unknown": not_known}
