"""Marks on figures along the steps: change points with their intervals, and the switch of the axis.

A change is a mark on the line of its layer, a diamond where it jumps and a triangle where it turns, over a
bar from one end of the 95 % interval of its place to the other. Of layers that are not drawn as lines no
change is marked; all are in the rows of the unit `between`.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

import plotly.graph_objects as go

from isoscope.show.colours import INK, SOFT, Pair
from isoscope.show.figures.panels import KINDS, Panel
from isoscope.show.figures.step_axis import Changed, StepAxis
from isoscope.show.figures.trajectories import MOST_LINES, OWN, Depths, number, spaced
from isoscope.show.readings import SiteReading

SYMBOLS = {"jump": "diamond", "turn": "triangle-up"}
SIGNS = {"jump": "M5 0l5 5l-5 5l-5-5z", "turn": "M5 0l5 9h-10z"}
"""The same marks as paths in a square of ten, for the key."""
COLOURS: tuple[Pair, ...] = (INK, SOFT)


Found = tuple[Changed, int, SiteReading]
"""A change, the step at which it is drawn, and the reading there."""


def mark_changes(
    panel: Panel, changes: Sequence[Changed], readings: list[SiteReading], axis: StepAxis, places: Depths
) -> int:
    """Mark the changes of a panel's measure on its lines; gives how many there are."""
    measure = panel.measures[0]
    only = next((kind for kind, name in KINDS.items() if panel.heading.endswith(f" · {name}")), None)
    own = [r for r in readings if r.measure == measure and only in (None, r.kind)]
    lined = set(spaced(sorted({r.place for r in own}), MOST_LINES))
    at = {(r.kind, r.layer, r.step): r for r in own if r.known and r.place in lined}
    found = []
    for change in changes:
        step = _drawn(change.step, axis)
        reading = at.get((change.kind, change.layer, step)) if change.measure == measure else None
        if reading is not None:
            found.append((change, step, reading))
    if found:
        _add_intervals(panel.figure, found, axis)
        _add_marks(panel.figure, found, axis, places)
    return len(found)


def _drawn(step: int, axis: StepAxis) -> int:
    """The step that is drawn nearest to this one, on the axis."""
    return min(axis.steps, key=lambda other: abs(axis.at(other) - axis.at(step)))


def _add_intervals(figure: go.Figure, found: list[Found], axis: StepAxis) -> None:
    x: list[float | None] = []
    y: list[float | None] = []
    for change, _, reading in found:
        x += [axis.at(change.low), axis.at(change.high), None]
        y += [number(reading.value), number(reading.value), None]
    line = {"color": INK[0], "width": 5}
    figure.add_scatter(x=x, y=y, mode="lines", line=line, opacity=0.3, hoverinfo="skip")


def _add_marks(figure: go.Figure, found: list[Found], axis: StepAxis, places: Depths) -> None:
    """One series for each colour, so that a dark screen can swap it."""
    groups: dict[str, list[Found]] = {}
    for one in found:
        pair = OWN if one[2].kind == "training" else places.colours[one[2].place]
        groups.setdefault(pair[0], []).append(one)
    for colour, group in groups.items():
        figure.add_scatter(
            x=[axis.at(step) for _, step, _ in group],
            y=[number(reading.value) for *_, reading in group],
            mode="markers",
            marker={
                "size": 9,
                "color": colour,
                "symbol": [SYMBOLS[change.what] for change, *_ in group],
                "line": {"color": INK[0], "width": 1.25},
            },
            hovertext=[_told(change, reading) for change, _, reading in group],
            hoverinfo="text",
        )


def _told(change: Changed, reading: SiteReading) -> str:
    place = f"after step {change.low:,}, by step {change.high:,} (95 %)"
    return f"<b>{reading.site} {change.what}s</b><br>{place}<br>{html.escape(change.words)}"


def make_switchable(figure: go.Figure, axis: StepAxis) -> None:
    """Tell the page's script how the steps stand here, and what the other axis has as ticks and range."""
    first = next((step for step in axis.steps if step > 0), 1)
    other = StepAxis(axis.steps, axis.measured, not axis.log)
    ticks = other.ticks()
    figure.update_layout(
        meta={
            "log": axis.log,
            "first": first,
            "other": {
                "range": list(other.range),
                "tickvals": [other.at(step) for step in ticks],
                "ticktext": [f"{step:,}" for step in ticks],
            },
        }
    )
