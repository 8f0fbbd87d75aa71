"""Advice in plain words: what each repair would change, what to do, and what no geometry tells.

Each sentence is a function of the findings and names the rows it was made from (`advise_judged` has where
words begin). No sentence says that a repair helps: that takes a task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from isoscope.formatting import listed, plain, short
from isoscope.kinds.advise import space
from isoscope.kinds.advise.findings import Findings
from isoscope.kinds.advise.judged import (
    NARROW,
    PASSED,
    Said,
    between,
    changed,
    cosine,
    crowded,
    enough,
    gentlest,
    one_cone,
    one_direction,
    per_cent,
    rogue,
    rows_of,
    share,
    told,
    uneven,
)
from isoscope.show.say.words import WEAK

PARTS = {
    "space": "What it looks like",
    "cause": "What makes it so",
    "repair": "What each repair would change",
    "do": "What to do",
    "unknown": "What is not known",
}


def advice(found: Findings) -> list[Said]:
    """All that is said, part by part."""
    return [said for write in WRITERS for said in write(found)]


def of_part(said: Sequence[Said], part: str) -> str:
    """The sentences of one part, a line each."""
    return "\n".join(one.text for one in said if one.part == part)


def headline(found: Findings) -> str:
    """One or two sentences on top of the page."""
    before = found.before
    if not before.cosine.bounded:
        return f"The mean cosine is {told(before.cosine)}; without an interval nothing is advised."
    if one_direction(found):
        centred = found.repaired("centre")
        assert centred is not None
        kept = f", and keeps {per_cent(centred.kept)} of the nearest neighbours" * centred.kept.known
        return (
            f"Nine in ten cosines lie between {between(before)} because of one common direction. "
            f"Subtracting the mean moves them to between {between(centred)}{kept}."
        )
    if crowded(found) and not one_cone(found):
        return (
            f"Nine in ten cosines lie between {between(before)}: some pairs point alike and others do not, "
            f"so their mean, {cosine(before.cosine.value)}, tells little of any one."
        )
    if crowded(found):
        centred = found.repaired("centre")
        rest = "not around 0."
        if centred is not None and centred.cosine.above(WEAK):
            rest = "and subtracting the mean alone does not bring them around 0."
        elif centred is not None:
            rest = "not around 0; whether subtracting the mean is enough cannot be told from "
            rest += f"{before.cosine.n} vectors."
        return f"Nine in ten cosines lie between {between(before)}, {rest}"
    if before.cosine.below(WEAK):
        return f"Nothing to repair in the scale of cosines: nine in ten lie between {between(before)}."
    return (
        f"Whether there is anything to repair cannot be told from {before.cosine.n} vectors: "
        f"the mean cosine is {told(before.cosine)}."
    )


def each_repair(found: Findings) -> list[Said]:
    """What each repair makes of the other half of the vectors."""
    out = []
    before = found.before
    for each in found.after:
        text = f"{each.name}: nine in ten cosines lie between {between(each)} (before, {between(before)}), "
        text += f"the mean is {told(each.cosine)}"
        sources = [each.cosine, each.quantiles[5], each.quantiles[95]]
        if each.rank.known:
            text += f"; effective rank {short(each.rank.value)} (before, {short(before.rank.value)})"
            sources.append(each.rank)
        if each.kept.known:
            text += f"; {per_cent(each.kept)} of the ten nearest neighbours stay"
            sources.append(each.kept)
        lost, was = each.anti_hubs, before.anti_hubs
        if lost.bounded and was.bounded and (lost.above(was.high) or lost.below(was.low)):
            text += f"; {per_cent(lost)} of the vectors are nobody's neighbour (before, {share(was.value)})"
            sources.append(lost)
        out.append(Said("repair", f"{text}.", rows_of(*sources)))
    return out


def subtract_the_mean(found: Findings) -> list[Said]:
    """The gentlest thing to do where it is enough."""
    centred, before = found.repaired("centre"), found.before
    if not one_direction(found) or centred is None:
        return []
    old, new = before.quantiles[100 - PASSED], centred.quantiles[100 - PASSED]
    text = "Your cosines lie above 0 because of one common direction: subtract the mean "
    text += "(`isoscope repair … --with centre`). If you compare cosines with a threshold, choose it anew: "
    text += f"one that {PASSED} % of pairs pass is {cosine(old.value)} now and {cosine(new.value)} then."
    if centred.kept.known:
        text += f" If you rank by cosine, {changed(centred.kept)} of the ten nearest neighbours change."
    return [Said("do", text, rows_of(before.cosine, centred.cosine, old, new, centred.kept))]


def drop_dimensions(found: Findings) -> list[Said]:
    """What to do where few dimensions carry it."""
    many, repaired = rogue(found), found.repaired("rogue")
    if not many or repaired is None or not repaired.cosine.below(found.before.cosine.low):
        return []
    names = listed([str(each.which) for each in found.dimensions[:many]])
    text = "To set to 0 the dimensions that carry it is one way: "
    text += f"`{repaired.name}` brings the mean cosine to {told(repaired.cosine)}"
    text += f" and keeps {per_cent(repaired.kept)} of the neighbours" if repaired.kept.known else ""
    which = f"dimension {names}: what does it" if many == 1 else f"dimensions {names}: what do they"
    text += f". First look at {which} stand for?"
    return [Said("do", text, rows_of(found.dimensions[many - 1].joined, repaired.cosine, repaired.kept))]


def more_than_the_mean(found: Findings) -> list[Said]:
    """What to do where the mean is not all."""
    if not one_cone(found) or one_direction(found):
        return []
    best = gentlest(found)
    if not best:
        near = f"within {plain(WEAK)} of 0"
        text = f"None of the repairs that were tried brings the mean cosine {near} for certain."
        if some := enough(found):
            names = listed([f"`{each.name}`" for each in some])
            text = f"The mean cosine comes {near} with {names}; how many neighbours stay is not certain."
        return [Said("do", text, rows_of(found.before.cosine, *(each.cosine for each in found.after)))]
    names, first = listed([f"`{each.name}`" for each in best]), best[0]
    text = f"Of the repairs that bring the mean cosine within {plain(WEAK)} of 0, "
    if len(best) == 1:
        text += f"{names} keeps most of the neighbours, {per_cent(first.kept)}; the mean cosine is then "
        text += f"{told(first.cosine)}."
    else:
        text += f"{names} keep most of the neighbours, about {share(first.kept.value)}; which of them keeps "
        text += "more cannot be told at this n."
    return [Said("do", text, rows_of(*(n for each in best for n in (each.cosine, each.kept))))]


def groups_first(found: Findings) -> list[Said]:
    """What to do where a mean cosine says little."""
    if not crowded(found) or one_cone(found):
        return []
    text = f"Do not judge by the mean cosine: with nine in ten cosines between {between(found.before)} the "
    text += "vectors tell pairs apart. First see which pairs are alike, and whether they should be."
    low, high = found.before.quantiles[5], found.before.quantiles[95]
    return [Said("do", text, rows_of(found.before.cosine, low, high))]


def nothing_to_repair(found: Findings) -> list[Said]:
    """What to do where cosines lie around 0, or where that cannot be told."""
    mean = found.before.cosine
    if mean.below(WEAK):
        text = f"Nothing to repair in the scale of cosines: the mean cosine is {told(mean)}, "
        text += f"under {plain(WEAK)}."
    elif not crowded(found):
        why = "its interval includes" if mean.bounded else "it has no interval to hold against"
        text = f"Whether there is anything to repair cannot be told: the mean cosine is {told(mean)}, "
        text += f"and {why} {plain(WEAK)}. More vectors would tell."
    else:
        return []
    return [Said("do", text, rows_of(mean))]


def even_out(found: Findings) -> list[Said]:
    """What whitening would do to a spread that is uneven."""
    white, score = found.repaired("whiten"), found.before.isoscore
    if not uneven(found) or white is None or not white.isoscore.value > score.value:
        return []
    out = "even it out" if white.isoscore.value >= NARROW * white.isoscore.null else "make it more even"
    text = f"The spread is uneven. Whitening (`{white.name}`) would {out} (IsoScore "
    text += f"{short(score.value)} to {short(white.isoscore.value)})"
    text += f", and change {changed(white.kept)} of the ten nearest neighbours" if white.kept.known else ""
    text += ". Do not do it unseen: try it on a task first."
    return [Said("do", text, rows_of(score, white.isoscore, white.kept))]


def not_known(found: Findings) -> list[Said]:
    """What no geometry tells."""
    text = "Whether a repair helps your task is not known from geometry alone: `isoscope impact` tells, with "
    text += "pairs, labels or queries of yours. "
    kept = [each.kept for each in found.after if each.kept.known]
    if kept:
        text += f"Neighbours were looked for among {kept[0].n} vectors; among more of them, more change."
    return [Said("unknown", text.strip(), rows_of(*kept))]


WRITERS: tuple[Callable[[Findings], list[Said]], ...] = (
    space.cosines_lie,
    space.spread_is,
    space.lengths,
    space.copies,
    space.hubs,
    space.unusable,
    space.common_direction,
    space.few_dimensions,
    space.tokens,
    each_repair,
    subtract_the_mean,
    drop_dimensions,
    more_than_the_mean,
    groups_first,
    nothing_to_repair,
    even_out,
    not_known,
)
