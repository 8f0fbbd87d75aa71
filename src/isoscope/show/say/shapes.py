"""The shapes of sentences: a range over sites, the topmost site, two groups compared.

A sentence that only fills a shape is a `Line` of a table; one that judges is a function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from isoscope.formatting import ABSENT, short
from isoscope.show.readings import SiteReading, ends, nulls, steps

MOST_NAMED = 4
"""So many models are named one by one; more are told by their range."""

STRONG = 0.5
"""The mean cosine is ‖mean of x/‖x‖‖²: above .5 the shared direction outweighs all the rest together."""

WEAK = 0.1
"""Below .1 the shared direction holds less than a tenth of the squared length: a convention."""

GRADES = ("strongly anisotropic", "anisotropic", "weakly anisotropic")


@dataclass(frozen=True)
class Line:
    """A sentence on one measure, of several sites and of one.

    Its fields are the readings `{low}` and `{top}`, `{range}` between them, `{chance}` (the null of the
    topmost), `{nulls}` (that of both), and `{null}`: the clause of that name, where its nulls are known.
    """

    many: str
    one: str = ""
    null: str = ""

    def fill(self, found: list[SiteReading]) -> str:
        """The sentence on these readings."""
        top, low = ends(found)
        fields = {"top": top, "low": low, "range": ranged(found)}
        fields |= {"chance": short(top.null), "nulls": nulls(found) or ABSENT}
        clause = self.null.format(**fields)
        text = self.many if len(found) > 1 else self.one or self.many
        return text.format(**fields, null="" if ABSENT in clause else clause)


def ranged(found: list[SiteReading]) -> str:
    """The range of values with where its ends are; one value where writing shows no difference."""
    top, low = ends(found)
    if len(found) == 1 or low.number == top.number:
        return low.measured
    return f"{low.measured} in {low.at} to {top.brief} in {top.at}"


def topmost(found: Sequence[SiteReading], most: str = "up to ") -> tuple[SiteReading, str]:
    """The reading with the largest value, and the words before it where there are several."""
    return max(found, key=lambda r: r.value), most if len(found) > 1 else ""


def graded(cosine: float) -> str:
    """The word of size that a mean cosine earns."""
    strong, middle, weak = GRADES
    return strong if cosine > STRONG else middle if cosine >= WEAK else weak


def latest(found: list[SiteReading]) -> tuple[list[SiteReading], int | None]:
    """The readings of the last step, and that step, where there are several; else all of them."""
    if len(steps(found)) < 2:
        return found, None
    last = steps(found)[-1]
    return [r for r in found if r.step == last], last


def capital(text: str) -> str:
    """The text with a capital first letter, as a sentence begins."""
    return text[:1].upper() + text[1:]


def lowered(text: str) -> str:
    """The text with a small first letter, as it stands after a colon."""
    return text[:1].lower() + text[1:]


def joined(parts: Sequence[str]) -> list[str]:
    """Clauses as one sentence; none where there is no clause."""
    return [f"{capital('; '.join(parts))}."] if parts else []
