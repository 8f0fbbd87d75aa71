"""A Measure is a named reading of a record, with everything a reader needs to trust it.

It names the records it reads (`stats`), the naive definition it must equal (`definition`), its bounds,
its null and the changes of the cloud that leave it alone. The tests run over all of this by table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from isoscope.results.reading import Influence, Reading
from isoscope.stats.base import Stat
from isoscope.stats.intervals import Array


@dataclass(frozen=True)
class Measure:
    """A named reading. The words are for the page, the rest is held by the tests.

    `read` takes the records named in `stats`. One that compares a layer with another takes that one's
    first record as well: `against` says which, the "previous" layer or the "first". `needs` is what the
    data must have for it: "sequences" (more than one vector each), "tokens", "layers" (more than one),
    "attention". An `extra` measure is read only when it is named or all are asked for: it costs much, or says
    little that the others do not. Read `at` attention or query_key, it gives several readings: the layer's,
    then one per head.
    `at` a vocabulary, a query_key or a norm it is of weights alone: its records are of `stats.weights`.
    """

    name: str
    family: str
    stats: tuple[type[Any], ...]
    read: Callable[..., Reading | tuple[Reading, ...]]
    definition: Callable[..., float | Tensor]
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
    needs: frozenset[str] = frozenset()
    against: str = ""
    at: str = "layer"
    extra: bool = False

    def readings(
        self, records: Mapping[type[Stat], Stat], there: Mapping[type[Stat], Stat]
    ) -> tuple[Reading, ...]:
        """Read it off the records of a site, and of the one `there` that it is held against.

        First the site's own; then, where there are heads, one of each.
        """
        mine = [records[stat] for stat in self.stats]
        found = self.read(*mine, there[self.stats[0]]) if self.against else self.read(*mine)
        return (found,) if isinstance(found, Reading) else found

    def reading(self, records: Mapping[type[Stat], Stat], there: Mapping[type[Stat], Stat]) -> Reading:
        """The site's own."""
        return self.readings(records, there)[0]

    def explanation(self) -> dict[str, object]:
        """The words, as a run keeps them for its page."""
        words = ("family", "title", "formula", "says", "misleads", "null", "interval", "source")
        low, high = (f"{bound:g}" for bound in self.bounds)
        top = "the number of dimensions" if self.ranklike else "any size" if high == "inf" else high
        return {**{word: getattr(self, word) for word in words}, "range": f"{low} to {top}"}


def undefined(n: int, why: str) -> Reading:
    """NaN, with its reason."""
    return Reading(math.nan, n, note=why)


def side_by_side(
    value: Array,
    n: Array,
    *,
    null: Array,
    low: Array,
    high: Array,
    notes: Iterable[str],
    influence: Influence | None = None,
) -> tuple[Reading, ...]:
    """One reading for each number of `value` [m], of the other columns [m]; NaN has nothing but n and note.

    `influence` is that of the first.

    >>> value, none = np.array([0.5, math.nan]), np.full(2, math.nan)
    >>> found = side_by_side(value, np.ones(2), null=none, low=none, high=none, notes=["", "why"])
    >>> [(reading.value, reading.note) for reading in found]
    [(0.5, ''), (nan, 'why')]
    """
    columns = (np.ravel(column).tolist() for column in (value, n, null, low, high))
    return tuple(
        undefined(int(n), note)
        if math.isnan(value)
        else Reading(value, int(n), null, low, high, note, influence=None if at else influence)
        for at, (value, n, null, low, high, note) in enumerate(zip(*columns, notes, strict=True))
    )
