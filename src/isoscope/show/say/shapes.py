"""The shapes of sentences: a `Line` of a table for one that fills a shape, a function for one that judges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from isoscope.formatting import short
from isoscope.show.readings import SiteReading, ends, nulls, numbered, where

MOST_NAMED = 4  # up to this number models are named one by one; more are described by their range
STRONG = 0.5
"""The mean cosine is ‖mean of x/‖x‖‖²: above .5 the shared direction outweighs all the rest together."""

WEAK = 0.1  # below .1 the shared direction holds less than a tenth of the squared length: a convention
GRADES = ("strongly anisotropic", "anisotropic", "weakly anisotropic")


@dataclass(frozen=True)
class Line:
    """A sentence on one measure; a clause with `{null}` follows where its null is known.

    The fields of its text are `{range}` (both ends with their sites), `{top}` and `{low}` (one end) and
    `{note}` (of the top). Where it is `tested`, a second sentence says which sites do not exceed their null.
    """

    text: str
    null: str = ""
    tested: bool = False

    def fill(self, found: list[SiteReading]) -> str:
        """The sentence on these readings."""
        top, low = ends(found)
        fields = {"range": ranged(found), "top": one_end(top, "up to", found)}
        fields |= {"low": one_end(low, "at least", found), "note": f" ({top.note})" if top.note else ""}
        at = [top] if "{top}" in self.text else [low] if "{low}" in self.text else found
        clause = self.null.format(null=nulls(at)) if nulls(at) else ""
        return f"{self.text.format(**fields)}{clause}.{beyond_chance(found) if self.tested else ''}"


def ranged(found: list[SiteReading]) -> str:
    """The range of values and where its ends are; one value where both are written alike."""
    most, least = ends(found)
    if len(found) == 1 or least.number == most.number:
        return least.measured
    return f"{least.measured} in {places([least])} to {most.brief} in {places([most])}"


def one_end(end: SiteReading, words: str, found: Sequence[SiteReading]) -> str:
    """The value at one end of the range; where values differ, after these words and with its site."""
    differ = len({r.number for r in found}) > 1
    return f"{words} {end.measured} in {places([end])}" if differ else end.measured


def beyond_chance(found: list[SiteReading]) -> str:
    """A sentence on the sites whose interval does not lie above their null; empty where all do."""
    rest = [r for r in found if not r.above(r.null)]
    if not rest:
        return ""
    at = f" in {places(rest)}" if len(rest) < len(found) else ""
    if any(r.bounded and math.isfinite(r.null) for r in rest):
        return f" It is indistinguishable from chance{at}."
    return f" Without both an interval and a null it cannot be compared with chance{at}."


def places(readings: Sequence[SiteReading]) -> str:
    """Layers by number, whatever is read there, since the section says what; other sites by name."""
    return numbered(readings) if all(r.layer is not None for r in readings) else where(readings)


def graded(cosine: float) -> str:
    """The word of size that a mean cosine earns."""
    strong, middle, weak = GRADES
    return strong if cosine > STRONG else middle if cosine >= WEAK else weak


def percent(value: float) -> str:
    """A share as a sentence has it: two digits."""
    return f"{short(100 * value, 2)} %"


def lowered(text: str) -> str:
    """The text with a small first letter, as it stands after a colon; an acronym keeps its case."""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]
