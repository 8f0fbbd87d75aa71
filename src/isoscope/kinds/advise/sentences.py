"""Advice in plain words: what a space looks like, what makes it so, what repairs change, and what to do.

Each sentence is written from the findings (which say where words begin), with the readings it rests on. No
sentence says that a repair helps: that takes a task.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from isoscope.formatting import listed, plain, short
from isoscope.kinds.advise import findings as limits
from isoscope.kinds.advise.findings import Findings, Space
from isoscope.kinds.advise.numbers import between, changed, cosine, per_cent, share, told
from isoscope.show.readings import SiteReading
from isoscope.show.say.shapes import WEAK

PARTS = {
    "space": "What it looks like",
    "cause": "What makes it so",
    "repair": "What each repair would change",
    "do": "What to do",
    "unknown": "What is not known",
}
_COUNT = {1: "One", 2: "Two", 3: "Three"}
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
    return [
        Said(part, text, tuple(dict.fromkeys(_source(reading) for reading in readings if reading.measure)))
        for part, writers in WRITERS.items()
        for write in writers
        for text, readings in write(found)
    ]


def _source(reading: SiteReading) -> str:
    site = f"dimension.{reading.layer}/" if reading.kind == "dimension" else ""
    return f"{reading.model}/{site}{reading.measure}"


def headline(found: Findings) -> str:
    """One or two sentences on top of the page."""
    mean, lie, centred = found.before.cosine, between(found.before), found.repaired("centre")
    if not mean.bounded:
        return f"The mean cosine is {told(mean)}; without an interval nothing is advised."
    if found.one_direction:
        kept = f", and keeps {per_cent(centred.kept)} of the nearest neighbours" * centred.kept.known
        text = f"Nine in ten cosines lie between {lie} because of one common direction. "
        return f"{text}Subtracting the mean moves them to between {between(centred)}{kept}."
    if found.crowded and not found.one_cone:
        text = f"Nine in ten cosines lie between {lie}: some pairs point alike and others do not, "
        return f"{text}so their mean, {cosine(mean.value)}, tells little of any one."
    if found.crowded:
        rest = "not around 0."
        if centred.cosine.above(WEAK):
            rest = "and subtracting the mean alone does not bring them around 0."
        elif centred.name:
            rest = "not around 0; whether subtracting the mean is enough cannot be told from "
            rest += f"{mean.n} vectors."
        return f"Nine in ten cosines lie between {lie}, {rest}"
    if mean.below(WEAK):
        return f"Nothing to repair in the scale of cosines: nine in ten lie between {lie}."
    text = f"Whether there is anything to repair cannot be told from {mean.n} vectors: "
    return f"{text}the mean cosine is {told(mean)}."


def cosines_lie(found: Findings) -> Lines:
    """Where cosines lie, and whether that is around 0."""
    mean, zero = found.before.cosine, "the 0 of a space without a common direction"
    text = f"Nine in ten cosines of two vectors lie between {between(found.before)}; the mean is {told(mean)}"
    cases = (
        (
            not mean.bounded,
            ". Without an interval it cannot be told from the 0 of a space without direction.",
        ),
        (found.crowded, ", where a space without a common direction has 0."),
        (mean.above(0) and mean.below(WEAK), f": little above {zero}."),
        (mean.above(0), f": above {zero}, how far cannot be told."),
        (mean.below(0), f": under {zero}."),
        (True, f", not to be told from {zero}."),
    )
    yield text + next(words for holds, words in cases if holds), [mean, *_ends(found.before)]


def spread_is(found: Findings) -> Lines:
    """How many directions the spread uses."""
    rank, score = found.before.rank, found.before.isoscore
    even = all(each.value >= limits.EVEN * each.null for each in (rank, score))
    cases = (
        (rank.value < limits.NARROW * rank.null, f"over few of the {found.width} dimensions"),
        (found.uneven, "over many directions, unevenly"),
        (True, "about as evenly as can be" if even else "fairly evenly"),
    )
    words = next(words for holds, words in cases if holds)
    text = f"About their mean, the vectors spread {words} (effective rank {short(rank.value)}, IsoScore "
    text += f"{short(score.value)}; an isotropic cloud of {rank.n} vectors has {short(rank.null)} and "
    if rank.known:
        yield f"{text}{short(score.null)}).", [rank, score]


def lengths(found: Findings) -> Lines:
    """Whether dot product and cosine rank alike."""
    varies, norm = found.before.norm_variation, found.before.norm
    if varies.value < limits.SAME_LENGTH:
        text = f"All vectors have the same length, {short(norm.value)}: dot products rank as cosines do. "
        yield f"{text}A repair changes lengths, so normalise again after it.", [varies, norm]
    elif varies.value > limits.UNLIKE_LENGTH:
        text = f"Lengths vary by {share(varies.value)} of their mean, {short(norm.value)}: "
        text += "dot products and cosines rank differently, and what is said here is of cosines."
        yield text, [varies, norm]


def copies(found: Findings) -> Lines:
    """Whether vectors occur more than once."""
    many = found.before.copies
    if many.value >= limits.MANY_COPIES:
        text = f"{share(many.value)} of the vectors are copies of another; in a search they are each other's "
        yield f"{text}nearest neighbours. Remove them from an index. Here each counts once.", [many]


def hubs(found: Findings) -> Lines:
    """Whether many vectors are nobody's neighbour."""
    lost, skew = found.before.anti_hubs, found.before.hubness
    few = f", while a few are among those of very many (skewness {short(skew.value)})"
    few *= skew.above(limits.VERY_SKEWED)
    if lost.above(limits.MANY_ANTI_HUBS):
        text = f"{per_cent(lost)} of the vectors are among the ten nearest neighbours of none{few}."
        yield text, [lost, skew]


def unusable(found: Findings) -> Lines:
    """What could not be used: NaN, zero, constant."""
    before, others = found.before, "; all else is of the others. Find out where they come from."
    no_direction = ("is zero and has no direction", "are zero and have no direction")
    for count, total, (one, several), rest in (
        (before.left_out, f"{before.left_out.n} vectors", ("has NaN or Inf", "have NaN or Inf"), others),
        (before.no_direction, f"{before.no_direction.n} vectors", no_direction, others),
        (before.constant, f"{found.width} dimensions", ("is", "are"), " the same in every vector."),
    ):
        if 0 < count.value < math.inf:
            many = int(count.value)
            yield f"{many} of {total} {one if many == 1 else several}{rest}", [count]


def common_direction(found: Findings) -> Lines:
    """Whether the mean makes the cosines what they are."""
    centred, before = found.repaired("centre"), found.before
    left = f"without the mean of other vectors than these the mean cosine is {told(centred.cosine)}"
    if not found.one_cone:
        text = "It is not one cone: some pairs point alike and others do not "
        text += f"({between(before)} bound nine in ten), as where vectors come in groups; {left}."
    elif found.one_direction:
        text = f"One common direction makes it, the mean vector: {left}. "
        text += f"The mean vector is {short(before.drift.value)} of a vector's length."
    elif centred.cosine.above(WEAK):
        text = f"It is not one common direction alone: {left}."
    else:
        text = f"Whether one common direction is all cannot be told at this n: {left}."
    if found.crowded and centred.name:
        yield text, [before.cosine, before.drift, centred.cosine, *_ends(before)]


def few_dimensions(found: Findings) -> Lines:
    """Whether a few coordinates carry the mean cosine."""
    few, many = found.dimensions[: limits.MOST_ROGUE], found.rogue
    if not found.crowded or len(few) < limits.MOST_ROGUE:
        return
    few = few[: many or limits.MOST_ROGUE]
    joined, names, count = few[-1].joined, listed([str(each.which) for each in few]), _COUNT[len(few)]
    carried = f"{per_cent(joined)} of the mean cosine"
    chance = f"a common direction that prefers no dimension carr{'ies' if many == 1 else 'y'} "
    chance += f"{share(joined.null)}."
    if many == 1:
        text = f"Dimension {names} alone carries {carried}; the largest of {chance}"
    elif many:
        text = f"{count} dimensions ({names}) carry {carried}; the largest {count.lower()} of {chance}"
    elif not joined.below(limits.ROGUE_SHARE):
        return
    elif joined.above(limits.STANDS_OUT * joined.null):
        text = f"Three dimensions ({names}) stand out but do not make it alone: they carry {carried}; "
        text += f"the largest three of {chance}"
    else:
        text = f"No few dimensions make it: the largest three ({names}) carry {carried}; those of {chance}"
    yield text, [each.joined for each in few]


def tokens(found: Findings) -> Lines:
    """Which tokens point alike, and what pooling does."""
    of, every, pooled = found.tokens, found.all_tokens.cosine, found.before.cosine
    ends = f"from {told(of.cosine)} without them to {told(every)} with them."
    special = "Special tokens and the first position pull the mean cosine of tokens"
    rarer = f"Rarer tokens point more alike than frequent ones: mean cosine {told(of.rarer)}"
    frequent = f"Frequent tokens point more alike than rarer ones: mean cosine {told(of.frequent)}"
    for more, less, text in (
        (of.frequent, of.rarer, f"{frequent} against {told(of.rarer)}."),
        (of.rarer, of.frequent, f"{rarer} against {told(of.frequent)}."),
        (every, of.cosine, f"{special} up, {ends}"),
        (of.cosine, every, f"{special} down, {ends}"),
    ):
        if less.bounded and more.above(less.high) and more.value - less.value > limits.APART:
            yield text, [more, less]
    if found.pool == "mean" and found.crowded and every.bounded and pooled.above(every.high):
        text = f"Pooling adds to it: token by token the mean cosine is {told(every)}, and the mean over a "
        text += f"text keeps what its tokens share, so that it becomes {told(pooled)}."
        yield text, [every, pooled]


def each_repair(found: Findings) -> Lines:
    """What each repair makes of the other half of the vectors."""
    before, was = found.before, found.before.anti_hubs
    for each in found.after:
        lost, readings = each.anti_hubs, [each.cosine, *_ends(each)]
        text = f"{each.name}: nine in ten cosines lie between {between(each)} (before, {between(before)}), "
        text += f"the mean is {told(each.cosine)}"
        rank = f"effective rank {short(each.rank.value)} (before, {short(before.rank.value)})"
        nobody = f"{per_cent(lost)} of the vectors are nobody's neighbour (before, {share(was.value)})"
        for holds, reading, words in (
            (each.rank.known, each.rank, rank),
            (each.kept.known, each.kept, f"{per_cent(each.kept)} of the ten nearest neighbours stay"),
            (was.bounded and (lost.above(was.high) or lost.below(was.low)), lost, nobody),
        ):
            text += f"; {words}" * holds
            readings += [reading] * holds
        yield f"{text}.", readings


def subtract_the_mean(found: Findings) -> Lines:
    """The gentlest thing to do where it is enough."""
    if not found.one_direction:
        return
    centred, before = found.repaired("centre"), found.before
    old, new = (space.quantiles[100 - limits.PASSED] for space in (before, centred))
    text = "Your cosines lie above 0 because of one common direction: subtract the mean "
    text += "(`isoscope repair … --with centre`). If you compare cosines with a threshold, choose it anew: "
    text += (
        f"one that {limits.PASSED} % of pairs pass is {cosine(old.value)} now and {cosine(new.value)} then."
    )
    if centred.kept.known:
        text += f" If you rank by cosine, {changed(centred.kept)} of the ten nearest neighbours change."
    yield text, [before.cosine, centred.cosine, old, new, centred.kept]


def drop_dimensions(found: Findings) -> Lines:
    """What to do where few dimensions carry it."""
    many, repaired = found.rogue, found.repaired("rogue")
    if not many or not repaired.cosine.below(found.before.cosine.low):
        return
    names = listed([str(each.which) for each in found.dimensions[:many]])
    text = "To set to 0 the dimensions that carry it is one way: "
    text += f"`{repaired.name}` brings the mean cosine to {told(repaired.cosine)}"
    text += f" and keeps {per_cent(repaired.kept)} of the neighbours" * repaired.kept.known
    which = f"dimension {names}: what does it" if many == 1 else f"dimensions {names}: what do they"
    text += f". First look at {which} stand for?"
    yield text, [found.dimensions[many - 1].joined, repaired.cosine, repaired.kept]


def more_than_the_mean(found: Findings) -> Lines:
    """What to do where the mean is not all."""
    if not found.one_cone or found.one_direction:
        return
    best, some, near = found.gentlest, _quoted(found.enough), f"within {plain(WEAK)} of 0"
    if not best:
        text = f"None of the repairs that were tried brings the mean cosine {near} for certain."
        if some:
            text = f"The mean cosine comes {near} with {some}; how many neighbours stay is not certain."
        yield text, [found.before.cosine, *(each.cosine for each in found.after)]
        return
    text, kept = f"Of the repairs that bring the mean cosine {near}, {_quoted(best)}", best[0].kept
    if len(best) == 1:
        text += f" keeps most of the neighbours, {per_cent(kept)}; the mean cosine is then "
        text += f"{told(best[0].cosine)}."
    else:
        text += (
            f" keep most of the neighbours, about {share(kept.value)}; which of them keeps more cannot be "
        )
        text += "told at this n."
    yield text, [reading for each in best for reading in (each.cosine, each.kept)]


def groups_first(found: Findings) -> Lines:
    """What to do where a mean cosine says little."""
    if found.crowded and not found.one_cone:
        text = f"Do not judge by the mean cosine: with nine in ten cosines between {between(found.before)} "
        text += "the vectors tell pairs apart. First see which pairs are alike, and whether they should be."
        yield text, [found.before.cosine, *_ends(found.before)]


def nothing_to_repair(found: Findings) -> Lines:
    """What to do where cosines lie around 0, or where that cannot be told."""
    mean = found.before.cosine
    is_ = f"the mean cosine is {told(mean)}"
    if mean.below(WEAK):
        yield f"Nothing to repair in the scale of cosines: {is_}, under {plain(WEAK)}.", [mean]
    elif not found.crowded:
        why = "its interval includes" if mean.bounded else "it has no interval to hold against"
        text = f"Whether there is anything to repair cannot be told: {is_}, and {why} {plain(WEAK)}. "
        yield f"{text}More vectors would tell.", [mean]


def even_out(found: Findings) -> Lines:
    """What whitening would do to a spread that is uneven."""
    white, score = found.repaired("whiten"), found.before.isoscore
    new = white.isoscore
    if found.uneven and new.value > score.value:
        out = "even it out" if new.value >= limits.NARROW * new.null else "make it more even"
        text = f"The spread is uneven. Whitening (`{white.name}`) would {out} (IsoScore "
        text += f"{short(score.value)} to {short(new.value)})"
        text += f", and change {changed(white.kept)} of the ten nearest neighbours" * white.kept.known
        yield f"{text}. Do not do it unseen: try it on a task first.", [score, new, white.kept]


def not_known(found: Findings) -> Lines:
    """What no geometry tells."""
    kept = [each.kept for each in found.after if each.kept.known]
    text = "Whether a repair helps your task is not known from geometry alone: `isoscope impact` tells, with "
    text += "pairs, labels or queries of yours."
    if kept:
        text += f" Neighbours were looked for among {kept[0].n} vectors; among more of them, more change."
    yield text, kept


def _ends(space: Space) -> tuple[SiteReading, SiteReading]:
    return space.quantiles[5], space.quantiles[95]


def _quoted(spaces: Sequence[Space]) -> str:
    return listed([f"`{each.name}`" for each in spaces]) if spaces else ""


WRITERS: dict[str, tuple[Callable[[Findings], Lines], ...]] = {
    "space": (cosines_lie, spread_is, lengths, copies, hubs, unusable),
    "cause": (common_direction, few_dimensions, tokens),
    "repair": (each_repair,),
    "do": (
        subtract_the_mean, drop_dimensions, more_than_the_mean, groups_first, nothing_to_repair, even_out,
    ),
    "unknown": (not_known,),
}  # fmt: skip
