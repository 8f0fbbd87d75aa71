"""Every measure there is, in the order in which tables show them."""

from __future__ import annotations

from collections.abc import Iterable

from isoscope.errors import unknown_name
from isoscope.measures import cosine, drift, health, spectrum, within
from isoscope.measures.base import Measure

MEASURES: tuple[Measure, ...] = (
    *cosine.MEASURES,
    *drift.MEASURES,
    *spectrum.MEASURES,
    *within.MEASURES,
    *health.MEASURES,
)

_BY_NAME = {measure.name: measure for measure in MEASURES}


def choose(names: str | Iterable[str] | None = None) -> tuple[Measure, ...]:
    """The measures of these names, in the table's order; all of them when none is named.

    >>> [measure.name for measure in choose(["drift", "mean_cosine"])]
    ['mean_cosine', 'drift']
    """
    asked = {names} if isinstance(names, str) else set(_BY_NAME) if names is None else set(names)
    for name in sorted(asked - set(_BY_NAME)):
        raise unknown_name("measure", name, _BY_NAME)
    return tuple(measure for measure in MEASURES if measure.name in asked)
