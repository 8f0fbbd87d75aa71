"""Every measure there is, in the order in which tables show them."""

from __future__ import annotations

from collections.abc import Iterable, Set

from isoscope.errors import IsoscopeError, unknown_name
from isoscope.measures import (
    alignment,
    anatomy,
    attention,
    cosine,
    counterfactual,
    dimensions,
    drift,
    health,
    neighbours,
    norms,
    partition,
    queries,
    query_key,
    spectrum,
    types,
    vocabulary,
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
    *anatomy.MEASURES,
    *counterfactual.MEASURES,
    *queries.MEASURES,
    *vocabulary.MEASURES,
    *query_key.MEASURES,
    *norms.MEASURES,
)

OF_WEIGHTS = ("vocabulary", "query_key", "norm")  # where what is measured are weights, without data

_BY_NAME = {measure.name: measure for measure in MEASURES}


ALL = "all"


def choose(names: str | Iterable[str] | None = None, has: Set[str] | None = None) -> tuple[Measure, ...]:
    """The measures of these names, in the table's order; without names, all that are not `extra`.

    The name "all" stands for every measure. Where no measure is named, those that need what the data does not
    have are left out. Measures of weights alone are not among them: `of_weights` has them.

    >>> [measure.name for measure in choose(["drift", "mean_cosine"])]
    ['mean_cosine', 'drift']
    >>> len(choose()) < len(choose("all"))
    True
    """
    asked = set() if names is None else {names} if isinstance(names, str) else set(names)
    if names is None or ALL in asked:
        return tuple(
            measure
            for measure in MEASURES
            if measure.at not in OF_WEIGHTS
            and not (names is None and measure.extra)
            and (has is None or measure.needs <= has)
        )
    for name in sorted(asked - set(_BY_NAME)):
        raise unknown_name("measure", name, _BY_NAME)
    chosen = tuple(measure for measure in MEASURES if measure.name in asked)
    if wrong := [measure.name for measure in chosen if measure.at in OF_WEIGHTS]:
        raise IsoscopeError(f"{', '.join(wrong)} is read off weights: `isoscope weights MODEL` gives it.")
    return chosen


def of_weights(at: str) -> tuple[Measure, ...]:
    """The measures of weights alone that are read `at` a vocabulary, a query_key or a norm."""
    return tuple(measure for measure in MEASURES if measure.at == at)
