"""Counts of vectors that the other readings had to leave out."""

from __future__ import annotations

import math

from isoscope.geometry import health
from isoscope.measures.base import Measure
from isoscope.results.reading import Reading
from isoscope.stats.centre import Centre
from isoscope.stats.directions import Directions


def _not_finite(record: Centre) -> Reading:
    return Reading(float(record.not_finite), record.sums.n + int(record.not_finite), null=0.0)


def _zero_vectors(record: Directions) -> Reading:
    return Reading(float(record.zeros), record.sums.n + int(record.zeros), null=0.0)


MEASURES = (
    Measure(
        name="not_finite",
        family="health",
        stats=(Centre,),
        read=_not_finite,
        definition=health.not_finite,
        title="vectors with NaN or Inf",
        formula="#{x : some x_k is NaN or Inf}",
        says="How many vectors could not be used; every other number is of the rest.",
        misleads="Not at all: anything but 0 wants a look.",
        null="0",
        interval="none: a count",
        source="isoscope",
        bounds=(0.0, math.inf),
        unchanged_by=frozenset({"rotation", "scale", "shift"}),
    ),
    Measure(
        name="zero_vectors",
        family="health",
        stats=(Directions,),
        read=_zero_vectors,
        definition=health.zero_vectors,
        title="vectors of norm zero",
        formula="#{x : ‖x‖ = 0}",
        says="How many vectors have no direction; the cosines are of the rest.",
        misleads="Padding that slipped through shows up here.",
        null="0",
        interval="none: a count",
        source="isoscope",
        bounds=(0.0, math.inf),
        unchanged_by=frozenset({"rotation", "scale"}),
    ),
)
