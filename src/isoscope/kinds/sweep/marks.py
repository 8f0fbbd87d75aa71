"""Marks on figures along the steps: change points with their intervals, and the switch of the axis.

A change is a mark on the line of its layer over a bar that is the 95 % interval of its place. Of layers that
are not drawn as lines no change is marked; all are in the rows of the unit `between`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from isoscope.show.charts import Hover, Series
from isoscope.show.colours import INK, Pair
from isoscope.show.figures.panels import KINDS, Panel
from isoscope.show.figures.step_axis import StepAxis, spaced
from isoscope.show.figures.trajectories import MOST_LINES, OWN, Depths
from isoscope.show.readings import SiteReading

SYMBOLS = {"jump": "diamond", "turn": "triangle-up"}
SIGNS = {"jump": "M5 0l5 5l-5 5l-5-5z", "turn": "M5 0l5 9h-10z"}
"""The same marks as paths in a square of ten, for the key."""


def mark_changes(
    panel: Panel, changes: Sequence[SiteReading], readings: Sequence[SiteReading], axis: StepAxis,
    places: Depths,
) -> Panel:  # fmt: skip
    """The panel with the changes of its measure marked on its lines."""
    only = next((kind for kind, name in KINDS.items() if panel.heading.endswith(f" · {name}")), None)
    own = [r for r in readings if r.measure == panel.measures[0] and only in (None, r.kind)]
    marks = change_marks(changes, own, axis, places)
    return replace(panel, chart=replace(panel.chart, series=[*panel.chart.series, *marks]))


def change_marks(
    changes: Sequence[SiteReading], own: Sequence[SiteReading], axis: StepAxis, places: Depths
) -> list[Series]:
    """The intervals of the changes of these readings, and marks, a series a colour and kind of change."""
    lined = set(spaced(sorted({r.place for r in own}), MOST_LINES))
    at = {(r.measure, r.kind, r.layer, r.step): r for r in own if r.known and r.place in lined}
    x, y = list[float | None](), list[float | None]()
    groups: dict[tuple[Pair, str], list[tuple[float, float, Hover]]] = {}
    for change in changes:
        low, high, first = map(int, (change.low, change.high, change.value))
        step = min(axis.steps, key=lambda other: abs(axis.at(other) - axis.at(first)))
        reading = at.get((change.about, change.kind, change.layer, step))
        if reading is not None:
            x += [axis.at(low), axis.at(high), None]
            y += [reading.value, reading.value, None]
            place = f"after step {low:,}, by step {high:,} (95 %)"
            told = Hover(f"{reading.site} {change.tag}s", "", [place, change.note])
            pair = OWN if reading.kind == "training" else places.colours[reading.place]
            groups.setdefault((pair, change.tag), []).append((axis.at(step), reading.value, told))
    if not groups:
        return []
    intervals = Series("95 % of its place", x, y, colour=INK, width=5, opacity=0.3, keyed=False)
    marks = [
        Series(
            what, [x for x, _, _ in group], [y for _, y, _ in group], style="dots",
            told=[told for *_, told in group], colour=pair, mark=SYMBOLS[what], size=9, opacity=1, edge=INK,
        )
        for (pair, what), group in groups.items()
    ]  # fmt: skip
    return [intervals, *marks]


def switchable(panel: Panel, axis: StepAxis) -> Panel:
    """The panel with what the page's script needs for the other axis of steps: its ticks and range."""
    first = next((step for step in axis.steps if step > 0), 1)
    other = StepAxis(axis.steps, axis.measured, not axis.log)
    ticks = other.ticks()
    text = [f"{step:,}" for step in ticks]
    shown = {"range": list(other.range), "tickvals": [other.at(step) for step in ticks], "ticktext": text}
    return replace(panel, chart=replace(panel.chart, meta={"log": axis.log, "first": first, "other": shown}))
