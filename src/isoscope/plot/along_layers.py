"""A measure along the layers: its interval as bars, its null dashed, a colour a model or a shade a step.

Decided here: of several models each is drawn at its last step; of one at many steps a few are, evenly spaced.
A layer without a value is a gap, and a shallow model is not joined to the output across layers that it has
not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

import pandas as pd

from isoscope.plot.select import one_model, readings_of, titled
from isoscope.show.charts import Chart
from isoscope.show.colours import MEASURES as TINTS
from isoscope.show.colours import MODELS, Pair, sequence
from isoscope.show.draw.matplotlib.sheet import shown
from isoscope.show.figures.curves import curves
from isoscope.show.figures.panels import KINDS
from isoscope.show.figures.step_axis import spaced
from isoscope.show.measures import TOGETHER, Told, title_of
from isoscope.show.readings import SiteReading, at_last, models
from isoscope.show.readings import steps as steps_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_STEPS = 6


def layers(
    frame: pd.DataFrame,
    measure: str | Sequence[str] | None = None,
    *,
    ax: Axes | None = None,
    told: Told | None = None,
    legend: bool = True,
) -> Axes:
    """Draw a measure along the layers, with intervals and null; `told` is `run.measures`, for its title.

    Several measures of one model at one step share the axes, a colour each.
    """
    return shown(layers_chart(frame, measure, told), ax, legend=legend)


def layers_chart(frame: pd.DataFrame, measure: str | Sequence[str] | None, told: Told | None) -> Chart:
    """The chart that `layers` draws."""
    several = not (measure is None or isinstance(measure, str))
    if several:
        found = _together(frame, list(measure or ()), told)
    else:
        found = _curves(readings_of(frame, measure if isinstance(measure, str) else None))
    own = [r for curve in found for r in curve.readings]
    chart = curves(
        {one.name: one.readings for one in found},
        {one.name: one.colour for one in found},
        "layer",
        turns={one.name: one.turn for one in found},
    )
    places = [r.place for r in own]
    room = max(0.5, 0.03 * (max(places) - min(places)))
    ranged = replace(chart, x=replace(chart.across, range=(min(places) - room, max(places) + room)))
    shared = next((title for title, group in TOGETHER.items() if own[0].measure in group), "")
    return ranged.named(y=shared if several else titled(own[0].measure, told))


@dataclass(frozen=True)
class Curve:
    """A curve: what it is called, its colour, the turn of its mark and dashes, and its readings."""

    name: str
    colour: Pair
    turn: int
    readings: list[SiteReading]


def _curves(found: list[SiteReading]) -> list[Curve]:
    names, steps = models(found), steps_of([r for r in found if r.known])
    kinds = [kind for kind in KINDS if any(r.kind == kind for r in found)]
    parts: list[Curve] = []
    if len(names) == 1 and len(steps) > 1:
        some = spaced(steps, MOST_STEPS)
        for step, pair in zip(some, sequence(len(some)), strict=True):
            parts.append(Curve(f"step {step:,}", pair, 0, [r for r in found if r.step == step]))
    else:
        for i, name in enumerate(names):
            own = at_last([r for r in found if r.model == name])
            parts.append(Curve(name, MODELS[i % len(MODELS)], i // len(MODELS), own))
    if len(kinds) < 2:
        return [part for part in parts if any(r.known for r in part.readings)]
    split = []
    for part, (at, kind) in product(parts, enumerate(kinds)):
        mine = [r for r in part.readings if r.kind == kind]
        label = f"{part.name}, {KINDS[kind]}" if len(parts) > 1 else KINDS[kind]
        tint = part.colour if len(parts) > 1 else MODELS[at]
        split += [Curve(label, tint, part.turn + at, mine)] if any(r.known for r in mine) else []
    return split


def _together(frame: pd.DataFrame, asked: Sequence[str], told: Told | None) -> list[Curve]:
    """One curve a measure, called as the page calls it beside the others."""
    labels = {m: label for group in TOGETHER.values() for m, label in group.items()}
    found = []
    for i, measure in enumerate(asked):
        own = at_last(one_model(readings_of(frame, measure)))
        own = [r for r in own if r.kind == own[0].kind or r.kind not in KINDS]
        label = labels.get(measure) or title_of(measure, told or {})
        found.append(Curve(label, TINTS[i % len(TINTS)], i // len(TINTS), own))
    return found
