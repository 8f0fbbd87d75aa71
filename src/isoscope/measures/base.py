"""A Measure is a named reading of a record, with everything a reader needs to trust it.

It names the record it reads (`stat`), the naive definition it must equal (`definition`), its bounds,
its null and the changes of the cloud that leave it alone. The tests run over all of this by table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from isoscope.stats.base import Stat


@dataclass(frozen=True)
class Reading:
    """One number as read: its n, what it would be for an isotropic cloud, its 95 % interval, a note."""

    value: float
    n: int
    null: float = math.nan
    low: float = math.nan
    high: float = math.nan
    note: str = ""


@dataclass(frozen=True)
class Measure:
    """A named reading. The words are for the page, the rest is held by the tests."""

    name: str
    family: str
    stat: type[Stat]
    read: Callable[[Any], Reading]
    definition: Callable[..., float]
    title: str
    formula: str
    says: str
    misleads: str
    null: str
    interval: str
    source: str
    bounds: tuple[float, float]
    unchanged_by: frozenset[str]
    ranklike: bool = False

    def explanation(self) -> dict[str, object]:
        """The words, as a run keeps them for its page."""
        words = ("family", "title", "formula", "says", "misleads", "null", "interval", "source")
        low, high = (f"{bound:g}" for bound in self.bounds)
        top = "the number of dimensions" if self.ranklike else "any size" if high == "inf" else high
        return {**{word: getattr(self, word) for word in words}, "range": f"{low} to {top}"}


def undefined(n: int, why: str) -> Reading:
    """NaN, with its reason."""
    return Reading(math.nan, n, note=why)
