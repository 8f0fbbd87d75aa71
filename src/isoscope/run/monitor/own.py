"""Numbers of the training loop's own, such as its loss, kept beside the rows of a look.

They are rows of the kind "training", of no site, and carry no null and no interval: isoscope was told them
and cannot say how sure they are. Their explanation travels with the unit, since their names are not known
when the run begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from isoscope.errors import IsoscopeError
from isoscope.results.reading import Reading
from isoscope.results.row import Row
from isoscope.run.observe.observation import Observation

OWN = "training"
"""The kind of these rows, and the family of their explanation."""


def own_rows(values: Mapping[str, float], seen: Observation, run: str) -> Iterator[Row]:
    """One row a number, at the model and step of a look; a name that a measure has is refused."""
    measured = {measure.name for measure in seen.measures}
    for name, value in values.items():
        if name in measured:
            raise IsoscopeError(f"'{name}' is a measure of isoscope's own; give the number another name.")
        try:
            reading = Reading(float(value), 1)  # a tensor of one number will do
        except (TypeError, ValueError, RuntimeError) as reason:
            told = f"values are numbers by name; '{name}' is {type(value).__name__}."
            raise IsoscopeError(told) from reason
        yield Row.at(run, seen.model, seen.revision, seen.step, OWN, None, None, name, reading)


def explained(names: Mapping[str, float]) -> dict[str, dict[str, object]]:
    """What a page tells of each of them."""
    return {
        name: {
            "family": OWN,
            "title": name.replace("_", " "),
            "says": "A number that the training loop told at this step.",
            "null": "none",
            "interval": "none",
        }
        for name in names
    }
