"""Where a word begins: the thresholds of advice, each stated once, and what they decide.

Decided here: what is claimed of a mean cosine, of a share of it or of neighbours must hold for the whole 95 %
interval; where there is none, the number is told and nothing is claimed. Effective rank and IsoScore have no
valid one: they are held against their null by a factor of two. Quantiles, lengths and copies describe these
vectors, and are taken as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

from isoscope.formatting import short, two
from isoscope.kinds.advise.findings import Findings, Space
from isoscope.results.reading import Reading
from isoscope.show.readings import SiteReading
from isoscope.show.say.words import STRONG, WEAK

ROGUE_SHARE = 0.5
"""Dimensions are called the cause where they carry more than half of the mean cosine together."""

MOST_ROGUE = 3
"""More dimensions than that are not few (Timkey & van Schijndel 2021 tell the first three)."""

STANDS_OUT = 2.0
"""Dimensions stand out where they carry more than twice what the largest of a random direction carry."""

NARROW = 0.5
"""The spread is narrow where its effective rank is under half of an isotropic cloud's, uneven where its
IsoScore is."""

EVEN = 0.8
"""It is about as even as can be where both come to that much of an isotropic cloud's."""

VERY_SKEWED = 1.0
"""The skewness of how often a vector is a neighbour above which a few are hubs: by chance it is 0.3."""

APART = 0.05
"""Mean cosines of tokens that differ by less are not worth a sentence, however sure the difference is."""

SAME_LENGTH, UNLIKE_LENGTH = 0.001, 0.2
"""Lengths are the same where they vary by less than the first, and unlike by more than the second."""

MANY_COPIES = 0.01
"""The share of the vectors from which on copies are told."""

MANY_ANTI_HUBS = 0.1
"""The share of the vectors that are nobody's neighbour, above which it is told."""

PASSED = 5
"""Per cent of the pairs that the threshold of the example lets pass."""

NEAR_ONE, NEAR_ZERO = 0.99, 0.01
"""Cosines beyond the first are told with four digits, where two would show 1, under the second with three."""


@dataclass(frozen=True)
class Said:
    """A sentence, the part of the page it belongs to, and the rows behind it (``model/measure``)."""

    part: str
    text: str
    rows: tuple[str, ...]


def crowded(found: Findings) -> bool:
    """Whether the vectors share a direction by more than a convention's worth, for certain."""
    return found.before.cosine.above(WEAK)


def narrow(found: Findings) -> bool:
    """Whether the spread uses under half of the directions that an isotropic cloud of this n does."""
    rank = found.before.rank
    return rank.known and rank.value < NARROW * rank.null


def uneven(found: Findings) -> bool:
    """Whether the variance of some directions is so much larger that half of the evenness is lost."""
    score = found.before.isoscore
    return score.known and score.value < NARROW * score.null


def even(found: Findings) -> bool:
    """Whether rank and IsoScore are near those of an isotropic cloud."""
    space = found.before
    return all(each.value >= EVEN * each.null for each in (space.rank, space.isoscore))


def one_cone(found: Findings) -> bool:
    """Whether pairs are about as alike, and not some very much and others not at all, as in clusters.

    Of nine in ten pairs, the least alike are above what is weak, or the most alike below what is strong.
    """
    least, most = (found.before.quantiles[end].value for end in (5, 95))
    return crowded(found) and (least > WEAK or most < STRONG)


def one_direction(found: Findings) -> bool:
    """Whether taking the mean away is enough: what is left of a cone is under the convention, for certain."""
    centred = found.repaired("centre")
    return one_cone(found) and centred is not None and centred.cosine.below(WEAK)


def rogue(found: Findings) -> int:
    """How few dimensions carry more than half of the mean cosine, and than chance, for certain; 0: none."""
    few = found.dimensions[:MOST_ROGUE]
    carry = [each.joined.above(max(ROGUE_SHARE, each.joined.null)) for each in few]
    return 1 + carry.index(True) if crowded(found) and any(carry) and found.width > 2 * MOST_ROGUE else 0


def enough(found: Findings) -> list[Space]:
    """The repairs that bring the mean cosine within the convention around 0, for certain."""
    return [each for each in found.after if each.cosine.below(WEAK) and each.cosine.above(-WEAK)]


def gentlest(found: Findings) -> list[Space]:
    """Of the repairs that bring the mean cosine under the convention, that which keeps most neighbours.

    With it go those that cannot be told from it.
    """
    known = sorted((each for each in enough(found) if each.kept.bounded), key=lambda each: -each.kept.value)
    return [each for each in known if not each.kept.below(known[0].kept.low)]


def between(space: Space) -> str:
    """Where nine in ten cosines lie, as after "between".

    >>> from dataclasses import replace
    >>> from isoscope.kinds.advise.findings import NONE
    >>> lies = {5: replace(NONE, value=0.9981), 95: replace(NONE, value=0.9994)}
    >>> between(Space("before", NONE, NONE, NONE, NONE, NONE, lies))
    '0.998 and 0.999'
    """
    return " and ".join(two(space.quantiles[5].value, space.quantiles[95].value))


def cosine(value: float, digits: int = 2) -> str:
    """A cosine as a sentence has it: two decimals, three near 0 and four near 1, where two would show those.

    >>> cosine(0.8642), cosine(0.99812), cosine(0.0042), cosine(-9e-6), cosine(-0.31)
    ('0.86', '0.9981', '0.004', '0.000', '−0.31')
    """
    digits = max(digits, 4 if abs(value) > NEAR_ONE else 3 if abs(value) < NEAR_ZERO else 2)
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")


def ends(number: Reading) -> tuple[str, str, str]:
    """A cosine and the ends of its interval, with so many decimals that the ends differ, four at most."""
    low, high = next(
        (
            (low, high)
            for digits in (2, 3)
            if (low := cosine(number.low, digits)) != (high := cosine(number.high, digits))
        ),
        (cosine(number.low, 4), cosine(number.high, 4)),
    )
    return cosine(number.value, len(low.partition(".")[2])), low, high


def told(number: Reading) -> str:
    """A cosine, with its interval where it has one.

    >>> told(Reading(0.1312, 9, low=0.1291, high=0.1333)), told(Reading(0.4, 9))
    ('0.131 (95 % interval 0.129 to 0.133)', '0.40')
    """
    if not number.bounded:
        return cosine(number.value)
    value, low, high = ends(number)
    return f"{value} (95 % interval {low} to {high})"


def per_cent(number: Reading) -> str:
    """A share with its interval, as per cents.

    >>> per_cent(Reading(0.8123, 9, low=0.8, high=0.83)), per_cent(Reading(0.0123, 9))
    ('81 % (80 to 83 %)', '1.2 %')
    >>> per_cent(Reading(0.4, 9, low=0.398, high=0.402))
    '40.0 % (39.8 to 40.2 %)'
    """
    if not number.bounded:
        return share(number.value)
    digits = 0 if f"{100 * number.low:.0f}" != f"{100 * number.high:.0f}" else 1
    value, low, high = (
        f"{100 * each:.{digits}f}".replace("-", "−") for each in (number.value, number.low, number.high)
    )
    return f"{value} % ({low} to {high} %)"


def changed(kept: Reading) -> str:
    """The share that does not stay."""
    return per_cent(Reading(1 - kept.value, kept.n, low=1 - kept.high, high=1 - kept.low))


def share(value: float) -> str:
    """A share as per cents."""
    return f"{_bare(value)} %"


def rows_of(*readings: SiteReading) -> tuple[str, ...]:
    """The rows that a sentence rests on, each once: "before/mean_cosine_between"."""
    return tuple(dict.fromkeys(_source(reading) for reading in readings if reading.measure))


def _source(reading: SiteReading) -> str:
    site = f"dimension.{reading.layer}/" if reading.kind == "dimension" else ""
    return f"{reading.model}/{site}{reading.measure}"


def _bare(value: float) -> str:
    return f"{100 * value:.0f}".replace("-", "−") if abs(value) >= 0.1 else short(100 * value, 2)
