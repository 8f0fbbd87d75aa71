"""What albums of pictures share: one head is picked, and empty panels are filled with its points by a script.

Of more units than a page can carry as many are kept as fit, evenly spaced.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import pandas as pd

from isoscope.errors import IsoscopeError
from isoscope.results.units import step_of
from isoscope.show.charts import rounded
from isoscope.show.figures.panels import KINDS, Panel
from isoscope.show.figures.step_axis import spaced
from isoscope.show.packed import line
from isoscope.show.readings import SiteReading, at_last, models, read

MOST = 60_000  # points of one album that a page carries
Head = tuple[int, str, int, int]  # a head: the number of its unit, the kind of site, layer and head
SiteHead = tuple[str, int, int]  # the kind of site, layer and head
Line = list[list[float | None]]  # x and y of one series
Points = TypeVar("Points", list[Line], dict[str, Line])


@dataclass(frozen=True)
class Album(Generic[Points]):
    """Empty panels by name, the points of every head, the names of the units, and the head shown first.

    The points of a head are a list per panel, or lines by name of their `series`, which are listed by panel.
    """

    panels: Mapping[str, Panel]
    units: tuple[str, ...]
    heads: Mapping[Head, Points]
    first: Head
    series: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def along(self) -> str:
        """What the units are: steps of training, or something else."""
        return "step" if all(name.isdigit() for name in self.units) else "unit"

    @property
    def kinds(self) -> dict[str, str]:
        """What kinds of attention are called, where there are several."""
        kinds = {kind: name for kind, name in KINDS.items() if any(at[1] == kind for at in self.heads)}
        return kinds if len(kinds) > 1 else {}

    def picked(
        self, layer: int | None, head: int | None, kind: str | None = None, unit: str | None = None
    ) -> Head:
        """The head shown first, or the first of the last unit, or of `unit`, that is as asked for."""
        if unit is not None and unit not in self.units:
            there = ", ".join(self.units)
            raise IsoscopeError(f"there is no {self.along} {unit} among these points, only {there}.")
        asked = (self.units.index(unit) if unit is not None else self.first[0], kind, layer, head)
        for one in (self.first, *self.heads):
            if all(want in (None, has) for want, has in zip(asked, one, strict=True)):
                return one
        some = ", ".join(f"{a}.{b}" for _, _, a, b in of_last_unit(self.heads)[:12])
        raise IsoscopeError(
            f"no head {head} of layer {layer} is among these points; layers and heads that are: {some}."
        )

    def data(self) -> dict[str, object]:
        """What the page carries: a head is its name and its points, lists of them packed."""
        first, heads = list(self.heads).index(self.first), _packed(self.heads)
        return {"units": self.units, "kinds": self.kinds, "first": first, "heads": heads}


def _packed(heads: Mapping[Head, list[Line] | dict[str, Line]]) -> list[list[object]]:
    return [
        [*head, [list(map(line, panel)) for panel in points] if isinstance(points, list) else points]
        for head, points in heads.items()
    ]


def fitting(points: pd.DataFrame, most: int) -> list[str]:
    """The units to show: all, or so many as fit, the first and the last among them."""
    sizes = points.groupby("unit", sort=False).size()
    units = list(map(str, sizes.index))
    room = most // int(sizes.max()) if units and int(sizes.sum()) > most else len(units)
    return spaced(units, room) if room > 1 else units[-1:]


def called(units: Sequence[str]) -> tuple[str, ...]:
    """The units as a list shows them: a step by its number."""
    return tuple(unit if step_of(unit) is None else str(step_of(unit)) for unit in units)


def by_head(points: pd.DataFrame, units: list[str]) -> dict[Head, dict[tuple[str, str], Line]]:
    """The lines of each head in these units by picture and series; heads in order."""
    heads: dict[Head, dict[tuple[str, str], Line]] = {}
    columns = ["unit", "kind", "layer", "head", "picture", "series"]
    for at, own in points[points["unit"].isin(units)].groupby(columns, sort=False):
        unit, kind, layer, head, picture, series = map(str, at)
        lines = heads.setdefault((units.index(unit), kind, int(layer), int(head)), {})
        lines[picture, series] = [[rounded(value, 3) for value in own[axis]] for axis in ("x", "y")]
    order = list(KINDS)
    return dict(sorted(heads.items(), key=lambda item: (item[0][0], order.index(item[0][1]), *item[0][2:])))


def of_last_unit(heads: Mapping[Head, object]) -> list[Head]:
    """The heads of the last unit."""
    return [head for head in heads if head[0] == max(unit for unit, *_ in heads)]


def known_of_heads(
    rows: pd.DataFrame | None, measures: Collection[str]
) -> dict[SiteHead, dict[str, SiteReading]]:
    """What is known of each head at the last step, by measure; nothing where there are several models."""
    if rows is None:
        return {}
    readings = read(rows[rows["head"].notna() & rows["measure"].isin(list(measures))])
    heads: dict[SiteHead, dict[str, SiteReading]] = {}
    for r in at_last([r for r in readings if r.known]) if len(models(readings)) == 1 else ():
        heads.setdefault((r.kind, r.layer or 0, r.head or 0), {})[r.measure] = r
    return heads
