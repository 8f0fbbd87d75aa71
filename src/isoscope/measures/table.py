"""Every measure there is, in the order in which tables show them."""

from __future__ import annotations

from collections.abc import Iterable, Set

from isoscope.errors import unknown_name
from isoscope.measures import (
    alignment,
    attention,
    cosine,
    counterfactual,
    dimensions,
    drift,
    health,
    neighbours,
    partition,
    queries,
    spectrum,
    types,
    within,
)
from isoscope.measures.base import Measure

MEASURES: tuple[Measure, ...] = (
    *cosine.MEASURES,
    *drift.MEASURES,
    *spectrum.MEASURES,
    *dimensions.MEASURES,
    *within.MEASURES,
    *types.MEASURES,
    *neighbours.MEASURES,
    *alignment.MEASURES,
    *partition.MEASURES,
    *health.MEASURES,
    *attention.MEASURES,
    *counterfactual.MEASURES,
    *queries.MEASURES,
)

_BY_NAME = {measure.name: measure for measure in MEASURES}


def choose(names: str | Iterable[str] | None = None, has: Set[str] | None = None) -> tuple[Measure, ...]:
    """The measures of these names, in the table's order; when none is named, all that need what there is.

    >>> [measure.name for measure in choose(["drift", "mean_cosine"])]
    ['mean_cosine', 'drift']
    """
    if names is None:
        return tuple(measure for measure in MEASURES if has is None or measure.needs <= has)
    asked = {names} if isinstance(names, str) else set(names)
    for name in sorted(asked - set(_BY_NAME)):
        raise unknown_name("measure", name, _BY_NAME)
    return tuple(measure for measure in MEASURES if measure.name in asked)
