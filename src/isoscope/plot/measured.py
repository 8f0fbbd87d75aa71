"""Charts of rows of models: along layers and steps, maps, the plane of weights, and values of one site.

Decided here: of several models each is drawn at its last step; of one at many steps a few are, evenly spaced.
A cell of a map is grey where there is no value.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import product

import pandas as pd

from isoscope.errors import IsoscopeError, unknown_name
from isoscope.kinds.sweep.marks import change_marks
from isoscope.plot.select import (
    OF_STEPS,
    PLACED,
    measures_with_values,
    one_model,
    probed,
    readings_of,
    rows_at,
    titled,
)
from isoscope.show.charts import Alarm, Chart, Series, turned
from isoscope.show.colours import MEASURES as TINTS
from isoscope.show.colours import MODELS, SOFT, Pair, sequence
from isoscope.show.figures.comparison import UP, against_drift, dots_against
from isoscope.show.figures.curves import curves, dot_of, rows_of_dots, value_axis
from isoscope.show.figures.maps import bounds, head_map
from isoscope.show.figures.panels import KINDS
from isoscope.show.figures.step_axis import Changed, StepAxis, spaced, step_axis
from isoscope.show.figures.trajectories import depths, trajectory
from isoscope.show.figures.weights import planes
from isoscope.show.measures import COSINES, MAPS, SCALES, TOGETHER, Told, how_shown, title_of
from isoscope.show.readings import PLACES, QUERY_KEY, SiteReading, at_last, latest, models, read, unique
from isoscope.show.readings import steps as steps_of
from isoscope.show.regimes import TRACES

MOST_STEPS = 6
MAPPED = tuple(unique(m for group in MAPS.values() for m in group))
"""Measures of heads that pages draw as maps."""
ACROSS = ("relative_drift", "drift", "mean_norm")


@dataclass(frozen=True)
class _Curve:
    """A curve: what it is called, its colour, the turn of its mark and dashes, and its readings."""

    name: str
    colour: Pair
    turn: int
    readings: list[SiteReading]


def layers(frame: pd.DataFrame, measure: str | Sequence[str] | None, told: Told | None) -> Chart:
    """A measure along the layers, or several measures of one model."""
    if measure is None or isinstance(measure, str):
        drawn = _by_model_or_step(readings_of(frame, measure))
    else:
        drawn = _by_measure(frame, measure, told or {})
    own = [r for curve in drawn for r in curve.readings]
    chart = curves(
        {one.name: one.readings for one in drawn},
        {one.name: one.colour for one in drawn},
        "layer",
        turns={one.name: one.turn for one in drawn},
    )
    places = [r.place for r in own]
    room = max(0.5, 0.03 * (max(places) - min(places)))
    ranged = replace(chart, x=replace(chart.across, range=(min(places) - room, max(places) + room)))
    if measure is None or isinstance(measure, str):
        return ranged.named(y=titled(own[0].measure, told))
    return ranged.named(y=next((title for title, group in TOGETHER.items() if own[0].measure in group), ""))


def _by_model_or_step(readings: list[SiteReading]) -> list[_Curve]:
    """A curve per model at its last step, or per step of one model, and per kind of attention."""
    names, steps = models(readings), steps_of(r for r in readings if r.known)
    kinds = [kind for kind in KINDS if any(r.kind == kind for r in readings)]
    if len(names) == 1 and len(steps) > 1:
        some = spaced(steps, MOST_STEPS)
        parts = [
            _Curve(f"step {step:,}", pair, 0, [r for r in readings if r.step == step])
            for step, pair in zip(some, sequence(len(some)), strict=True)
        ]
    else:
        last = latest(readings)
        parts = [
            _Curve(name, turned(i)[0], i // len(MODELS), [r for r in last if r.model == name])
            for i, name in enumerate(names)
        ]
    if len(kinds) > 1:
        whole, parts = parts, []
        for part, (at, kind) in product(whole, enumerate(kinds)):
            label = f"{part.name}, {KINDS[kind]}" if len(whole) > 1 else KINDS[kind]
            tint = part.colour if len(whole) > 1 else MODELS[at]
            own = [r for r in part.readings if r.kind == kind]
            parts.append(_Curve(label, tint, part.turn + at, own))
    return [part for part in parts if any(r.known for r in part.readings)]


def _by_measure(frame: pd.DataFrame, measures: Sequence[str], told: Told) -> list[_Curve]:
    """One curve per measure, called as the page calls it beside the others."""
    labels = {m: label for group in TOGETHER.values() for m, label in group.items()}
    drawn = []
    for i, measure in enumerate(measures):
        own = at_last(one_model(readings_of(frame, measure)))
        own = [r for r in own if r.kind == own[0].kind or r.kind not in KINDS]
        label = labels.get(measure) or title_of(measure, told)
        drawn.append(_Curve(label, TINTS[i % len(TINTS)], i // len(TINTS), own))
    return drawn


def steps(
    frame: pd.DataFrame,
    measure: str | None,
    told: Told | None,
    changes: Collection[Changed] = (),
    alarms: Collection[int] = (),
) -> Chart:
    """A measure along the steps, one line per layer; a layer has one colour in all panels of these rows."""
    own, axis = _along_steps(frame, measure)
    sited = frame[frame["head"].isna() & frame["kind"].isin(OF_STEPS)]
    places = depths(read(sited.drop_duplicates(["kind", "layer"])))
    chart = trajectory(own, axis, places, mapped=False)
    series = [*chart.series, *change_marks(list(changes), own, axis, places)]
    chart = replace(chart, series=series, alarms=[Alarm(axis.at(step)) for step in alarms])
    return chart.named(y=titled(own[0].measure, told), x=_step_name(axis))


def layers_by_steps(frame: pd.DataFrame, measure: str | None, told: Told | None) -> Chart:
    """The map of layers and steps that the page has under the lines."""
    own, axis = _along_steps(frame, measure)
    own = [r for r in own if r.kind != "training"] or own
    chart = replace(trajectory(own, axis, depths(own), mapped=True), series=())
    return chart.named(titled(own[0].measure, told), x=_step_name(axis))


def _step_name(axis: StepAxis) -> str:
    return "step, log scale" if axis.log else "step"


def _along_steps(frame: pd.DataFrame, measure: str | None) -> tuple[list[SiteReading], StepAxis]:
    """The readings of a measure that have a step, of one model and kind of attention, and their axis."""
    own = one_model([r for r in readings_of(frame, measure, kinds=OF_STEPS) if r.step is not None])
    if not any(r.known for r in own):
        raise IsoscopeError(
            "there is nothing to draw along steps: these rows have none; draw them along the layers."
        )
    first = own[0].kind
    if first.startswith("cross_") or any(r.kind == f"cross_{first}" for r in own):
        own = [r for r in own if r.kind == first]
    axis = step_axis(steps_of(own))
    return [r for r in own if r.step in axis.steps], axis


def heads(frame: pd.DataFrame, measure: str | None, kind: str | None, told: Told | None) -> Chart:
    """A map of heads, layers down and heads across, at the last step."""
    readings = one_model(readings_of(frame, measure, heads=True, kinds=KINDS, prefer=MAPPED))
    there = [name for name in KINDS if any(r.kind == name for r in readings)]
    if kind is not None and kind not in there:
        raise unknown_name("kind of attention in these rows", kind, there)
    own = at_last([r for r in readings if r.kind == (kind or there[0])])
    chart = head_map(own, *bounds(own[0].measure, [r.value for r in readings]))
    return chart.named(titled(own[0].measure, told))


def plane(frame: pd.DataFrame, measure: str, length: int | None, title: str = "") -> Chart:
    """Every head of one model by trace and scale of W, on the regimes of Bao et al. 2024."""
    if measure not in TRACES:
        raise unknown_name("trace", measure, TRACES)
    scale = TRACES[measure]
    traces = readings_of(frame, measure, heads=True, kinds=QUERY_KEY)
    if not (probed(frame)["measure"] == scale).any():
        raise IsoscopeError(f"the plane takes {scale} beside {measure}; these rows have none.")
    scales = readings_of(frame, scale, heads=True, kinds=QUERY_KEY)
    pairs = planes.pairs_of([*at_last(one_model(traces)), *at_last(one_model(scales))], measure)
    if not pairs:
        raise IsoscopeError(f"there is nothing to draw: no head has both {measure} and {scale}.")
    return planes.plane(pairs, planes.plane_frame(pairs), length).named(title)


def scatter(frame: pd.DataFrame, across: str, told: Told | None) -> Chart:
    """The mean cosine of every layer against its drift, one colour per model, at its last step."""
    if across not in ACROSS:
        raise unknown_name("measure to draw across", across, ACROSS)
    rows = rows_at(frame, PLACES, heads=False)
    readings = [r for r in read(rows[rows["measure"].isin([across, UP])]) if r.known]
    groups = dots_against(latest(readings), across, models(readings))
    if not any(groups.values()):
        raise IsoscopeError(f"there is nothing to draw: no layer has both {across} and {UP}.")
    chart = against_drift(groups, across, {name: turned(at)[0] for at, name in enumerate(groups)})
    hollow = Series("layer 0, hollow", [], [], style="dots", hollow=True, colour=SOFT)  # for the key
    if any(any(one.hollows) for one in chart.series):
        chart = replace(chart, series=[*chart.series, hollow])
    return chart.named(y=titled(UP, told), x=titled(across, told))


def dots(
    frame: pd.DataFrame, measures: Sequence[str] | None, told: Told | None, kinds: Sequence[str] = PLACED
) -> Chart:
    """Values of one site beside their nulls: of each model those of its last step and deepest place."""
    there = measures_with_values(frame, kinds)
    asked = list(measures) if measures is not None else [m for m in SCALES[COSINES] if m in there]
    asked = asked or there[:1]
    own: list[SiteReading] = []
    for measure in asked:
        last = [r for r in latest(readings_of(frame, measure, kinds=kinds)) if r.known]
        deepest = {name: max(r.place for r in last if r.model == name) for name in models(last)}
        own += [r for r in last if r.place == deepest[r.model]]
    if not own:
        raise IsoscopeError("there is nothing to draw: these rows hold no value of a site.")
    names = models(own)
    lines = [at for at in product(asked, names) if any((r.measure, r.model) == at for r in own)]
    drawn = [dot_of(r, lines.index((r.measure, r.model)), turned(names.index(r.model))[0]) for r in own]
    units = {how_shown(m).unit for m in asked}
    axis = replace(value_axis(own), name=units.pop() if len(units) == 1 else "")
    return rows_of_dots([title_of(m, told or {}) for m, _ in lines], drawn, axis)


def sites(
    frame: pd.DataFrame, measure: str | None, told: Told | None, kinds: Sequence[str] = PLACED
) -> Chart:
    """One measure at sites side by side; models stand beside each other at a site."""
    own = latest([r for r in readings_of(frame, measure, kinds=kinds) if r.known])
    names, places = models(own), unique(r.site for r in own)
    drawn = []
    for r in own:
        at = names.index(r.model)
        row = places.index(r.site) + 0.5 / len(names) * (at - (len(names) - 1) / 2)
        drawn.append(dot_of(r, row, turned(at)[0]))
    axis = replace(value_axis(own), name=titled(own[0].measure, told))
    return rows_of_dots([name.replace("-", " ") for name in places], drawn, axis)
