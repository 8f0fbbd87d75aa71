"""What a space looks like, and what makes it so: sentences from findings, each with the rows behind it."""

from __future__ import annotations

from isoscope.formatting import listed, short
from isoscope.kinds.advise.findings import Findings
from isoscope.kinds.advise.judged import (
    APART,
    MANY_ANTI_HUBS,
    MANY_COPIES,
    MOST_ROGUE,
    ROGUE_SHARE,
    SAME_LENGTH,
    STANDS_OUT,
    UNLIKE_LENGTH,
    VERY_SKEWED,
    Said,
    between,
    crowded,
    even,
    narrow,
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

_COUNT = {2: "Two", 3: "Three"}


def cosines_lie(found: Findings) -> list[Said]:
    """Where cosines lie, and whether that is around 0."""
    before = found.before
    where = f"Nine in ten cosines of two vectors lie between {between(before)}; the mean is "
    where += told(before.cosine)
    sources = rows_of(before.cosine, before.quantiles[5], before.quantiles[95])
    if not before.cosine.bounded:
        text = f"{where}. Without an interval it cannot be told from the 0 of a space without direction."
    elif crowded(found):
        text = f"{where}, where a space without a common direction has 0."
    elif before.cosine.above(0) and before.cosine.below(WEAK):
        text = f"{where}: little above the 0 of a space without a common direction."
    elif before.cosine.above(0):
        text = f"{where}: above the 0 of a space without a common direction, how far cannot be told."
    elif before.cosine.below(0):
        text = f"{where}: under the 0 of a space without a common direction."
    else:
        text = f"{where}, not to be told from the 0 of a space without a common direction."
    return [Said("space", text, sources)]


def spread_is(found: Findings) -> list[Said]:
    """How many directions the spread uses."""
    rank, score = found.before.rank, found.before.isoscore
    if not rank.known:
        return []
    numbers = f"(effective rank {short(rank.value)}, IsoScore {short(score.value)}; an isotropic cloud of "
    numbers += f"{rank.n} vectors has {short(rank.null)} and {short(score.null)})"
    words = f"over few of the {found.width} dimensions" if narrow(found) else "over many directions, unevenly"
    fairly = "about as evenly as can be" if even(found) else "fairly evenly"
    words = words if narrow(found) or uneven(found) else fairly
    text = f"About their mean, the vectors spread {words} {numbers}."
    return [Said("space", text, rows_of(rank, score))]


def lengths(found: Findings) -> list[Said]:
    """Whether dot product and cosine rank alike."""
    varies = found.norm_variation
    if not varies.known:
        return []
    if varies.value < SAME_LENGTH:
        text = f"All vectors have the same length, {short(found.norm.value)}: dot products rank as cosines "
        text += "do. A repair changes lengths, so normalise again after it."
    elif varies.value > UNLIKE_LENGTH:
        text = f"Lengths vary by {share(varies.value)} of their mean, {short(found.norm.value)}: "
        text += "dot products and cosines rank differently, and what is said here is of cosines."
    else:
        return []
    return [Said("space", text, rows_of(varies, found.norm))]


def copies(found: Findings) -> list[Said]:
    """Whether vectors occur more than once."""
    many = found.copies
    if not many.known or many.value < MANY_COPIES:
        return []
    text = f"{share(many.value)} of the vectors are copies of another; in a search they are each other's "
    text += "nearest neighbours. Remove them from an index. Here each counts once."
    return [Said("space", text, rows_of(many))]


def unusable(found: Findings) -> list[Said]:
    """What could not be used: NaN, zero, constant."""
    out = []
    for count, is_, are in (
        (found.left_out, "has NaN or Inf", "have NaN or Inf"),
        (found.no_direction, "is zero and has no direction", "are zero and have no direction"),
    ):
        if count.known and count.value > 0:
            many = int(count.value)
            what = is_ if many == 1 else are
            text = f"{many} of {count.n} vectors {what}; all else is of the others. "
            text += "Find out where they come from."
            out.append(Said("space", text, rows_of(count)))
    if found.constant.known and found.constant.value > 0:
        many = int(found.constant.value)
        text = f"{many} of {found.width} dimensions {'is' if many == 1 else 'are'} the same in every vector."
        out.append(Said("space", text, rows_of(found.constant)))
    return out


def hubs(found: Findings) -> list[Said]:
    """Whether many vectors are nobody's neighbour."""
    lost, skew = found.before.anti_hubs, found.before.hubness
    if not lost.above(MANY_ANTI_HUBS):
        return []
    text = f"{per_cent(lost)} of the vectors are among the ten nearest neighbours of none"
    if skew.above(VERY_SKEWED):
        text += f", while a few are among those of very many (skewness {short(skew.value)})"
    text += "."
    return [Said("space", text, rows_of(lost, skew))]


def common_direction(found: Findings) -> list[Said]:
    """Whether the mean makes the cosines what they are."""
    centred, before = found.repaired("centre"), found.before
    if not crowded(found) or centred is None:
        return []
    low, high = before.quantiles[5], before.quantiles[95]
    sources = rows_of(before.cosine, before.drift, centred.cosine, low, high)
    left = f"without the mean of other vectors than these the mean cosine is {told(centred.cosine)}"
    if not one_cone(found):
        text = (
            f"It is not one cone: some pairs point alike and others do not ({between(before)} bound nine in "
        )
        text += f"ten), as where vectors come in groups; {left}."
    elif one_direction(found):
        text = f"One common direction makes it, the mean vector: {left}. "
        text += f"The mean vector is {short(before.drift.value)} of a vector's length."
    elif centred.cosine.above(WEAK):
        text = f"It is not one common direction alone: {left}."
    else:
        text = f"Whether one common direction is all cannot be told at this n: {left}."
    return [Said("cause", text, sources)]


def few_dimensions(found: Findings) -> list[Said]:
    """Whether a few coordinates carry the mean cosine."""
    few = found.dimensions[:MOST_ROGUE]
    if not crowded(found) or len(few) < MOST_ROGUE:
        return []
    many = rogue(found)
    own = few[: many or MOST_ROGUE]
    joined, names = own[-1].joined, listed([str(each.which) for each in own])
    chance = "a common direction that prefers no dimension"
    if many == 1:
        text = f"Dimension {names} alone carries {per_cent(joined)} of the mean cosine; the largest of "
        text += f"{chance} carries {share(joined.null)}."
    elif many:
        text = f"{_COUNT[many]} dimensions ({names}) carry {per_cent(joined)} of the mean cosine; the "
        text += f"largest {_COUNT[many].lower()} of {chance} carry {share(joined.null)}."
    elif joined.below(ROGUE_SHARE) and joined.above(STANDS_OUT * joined.null):
        text = (
            f"Three dimensions ({names}) stand out but do not make it alone: they carry {per_cent(joined)} "
        )
        text += f"of the mean cosine; the largest three of {chance} carry {share(joined.null)}."
    elif joined.below(ROGUE_SHARE):
        text = f"No few dimensions make it: the largest three ({names}) carry {per_cent(joined)} of the mean "
        text += f"cosine; those of {chance} carry {share(joined.null)}."
    else:
        return []
    return [Said("cause", text, rows_of(*(each.joined for each in own)))]


def tokens(found: Findings) -> list[Said]:
    """Which tokens point alike, and what pooling does."""
    of, before, out = found.tokens, found.before.cosine, []
    for more, less, words in (
        (of.frequent, of.rarer, ("Frequent tokens point", "rarer ones")),
        (of.rarer, of.frequent, ("Rarer tokens point", "frequent ones")),
    ):
        if less.bounded and more.above(less.high) and more.value - less.value > APART:
            text = f"{words[0]} more alike than {words[1]}: "
            text += f"mean cosine {told(more)} against {told(less)}."
            out.append(Said("cause", text, rows_of(more, less)))
    for more, less, verb in (
        (of.with_special, of.cosine, "up"),
        (of.cosine, of.with_special, "down"),
    ):
        if less.bounded and more.above(less.high) and more.value - less.value > APART:
            text = f"Special tokens and the first position pull the mean cosine of tokens {verb}, "
            text += f"from {told(of.cosine)} without them to {told(of.with_special)} with them."
            out.append(Said("cause", text, rows_of(more, less)))
    every = of.with_special
    if found.pool == "mean" and crowded(found) and every.bounded and before.above(every.high):
        text = f"Pooling adds to it: token by token the mean cosine is {told(every)}, and the mean over a "
        text += f"text keeps what its tokens share, so that it becomes {told(before)}."
        out.append(Said("cause", text, rows_of(every, before)))
    return out
