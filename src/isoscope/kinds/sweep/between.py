"""Sections on what checkpoints show together: how alike they are, entropy with drift, where changes fall."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from isoscope.formatting import short
from isoscope.kinds.sweep.rows import SweepRows, changes_of
from isoscope.kinds.sweep.sentences import alike_words, changes_words, correlation_words
from isoscope.show.colours import AMOUNT, GRID, MEASURES, SIGNED, SOFT, Pair
from isoscope.show.draw.plotly.marks import HEIGHT, MOST_TICKS, blank, telling
from isoscope.show.figures.panels import Drawn, Panel
from isoscope.show.figures.step_axis import StepAxis
from isoscope.show.figures.trajectories import HEIGHT as SMALL
from isoscope.show.figures.trajectories import Depths, number, spaced, trajectory
from isoscope.show.measures import Family, Told, title_of
from isoscope.show.page.section import Section, explanations
from isoscope.show.readings import SiteReading, read

PAIRS = "cka_between"
_ALONG = ("cka_previous_checkpoint", "cka_last_checkpoint", "distance_to_last", "distance_from_previous")
_SQUARE = 380
_CURVES = (
    "That holds of straight trends: of two unrelated series that settle, 31 % reach p < .05 along training, "
    "7 to 24 % from checkpoint to checkpoint (noise of 5 %, 16 to 64 checkpoints), and more with less noise."
)
_DRIFTS = ("query", "key", "layer")
_LEVEL, _STEPWISE = "along training", "from checkpoint to checkpoint"
_KEY: tuple[tuple[str, Pair], ...] = ((_LEVEL, MEASURES[0]), (_STEPWISE, MEASURES[1]))


def between_sections(swept: SweepRows, axis: StepAxis, places: Depths, told: Told) -> list[Section]:
    """The sections there are, in order: changes, checkpoints against each other, entropy with drift."""
    made = [
        _changes(swept, axis, told),
        _checkpoints(swept, axis, places, told),
        _correlations(swept.between, told),
    ]
    return [section for section in made if section is not None]


def _section(
    name: str, family: Family, words: str, panels: Sequence[Panel], maps: Sequence[Panel],
    colours: Sequence[Pair], explained: Sequence[str], told: Told, key: tuple[tuple[str, Pair], ...] = (),
) -> Section:  # fmt: skip
    drawn = Drawn(tuple(panels), key, tuple(colours))
    return Section(name, family, words, (), tuple(panels), tuple(maps), drawn, explanations(explained, told))


def _changes(swept: SweepRows, axis: StepAxis, told: Told) -> Section | None:
    """At each step, in how many series a change may lie there."""
    found = changes_of(swept.between)
    words = changes_words(swept.between, swept.facts.get("between", {}), told)
    if not words:
        return None
    family = Family("Changes", "When does a measure jump or turn, and how sure is the place?", ())
    explained = ("jump", "turn", "stray")
    if not found:
        return _section("changes", family, words, (), (), (), explained, told)
    figure = blank(SMALL)
    x: list[float] = []
    series: dict[str, list[int]] = {what: [] for what in ("jump", "turn")}
    for a, b in pairwise(axis.steps):
        x += [axis.at(a), axis.at(b)]
        for what, counts in series.items():
            counts += [sum(one.what == what and one.low < b and one.high > a for one in found)] * 2
    for (what, counts), (colour, _) in zip(series.items(), MEASURES, strict=False):
        hover = [f"{count} {what}{'s' if count != 1 else ''}" for count in counts]
        figure.add_scatter(
            x=x, y=counts, mode="lines", line={"color": colour, "width": 2}, hovertext=hover, hoverinfo="text"
        )
    _steps(figure, axis)
    figure.update_layout(margin={"t": 20})
    figure.update_yaxes(
        title={"text": "series", "standoff": 6}, rangemode="tozero", automargin=True, nticks=5
    )
    key = tuple(zip(("jump", "turn"), MEASURES, strict=False))
    panel = Panel(("jump",), "Where changes fall", "series whose interval covers the step", figure, key)
    return _section("changes", family, words, [panel], (), MEASURES, explained, told)


def _steps(figure: go.Figure, axis: StepAxis) -> None:
    ticks = axis.ticks()
    figure.update_xaxes(
        range=list(axis.range), title={"text": "step", "standoff": 6}, tickangle=0,
        tickvals=[axis.at(step) for step in ticks], ticktext=[f"{step:,}" for step in ticks],
    )  # fmt: skip


def _checkpoints(swept: SweepRows, axis: StepAxis, places: Depths, told: Told) -> Section | None:
    own = swept.between
    pairs = own[own["measure"] == PAIRS]
    maps = [
        panel
        for _, group in pairs.groupby(["kind", "layer"], dropna=False, sort=False)
        if (panel := _matrix(group, swept.of.step_of)) is not None
    ]
    readings = read(own[own["measure"].isin(_ALONG) & own["step"].isin(axis.steps)])
    lines = []
    for measure in _ALONG:
        shown = [r for r in readings if r.measure == measure]
        if any(r.known for r in shown):
            placed = _placed(shown, places)
            figure, remark = trajectory(placed, axis, _with(places, placed), mapped=False)
            lines.append(Panel((measure,), title_of(measure, told), remark, figure))
    if not maps and not lines:
        return None
    family = Family("Checkpoints against each other", "When is the final arrangement there?", ())
    words = alike_words(own)
    shown_places = _with(places, _placed(readings, places))
    colours = (*AMOUNT, *SIGNED, *shown_places.colours.values(), *MEASURES)
    named = [m for m in (PAIRS, *_ALONG) if (own["measure"] == m).any()]
    return _section("checkpoints", family, words, lines, maps, colours, named, told, shown_places.key)


def _placed(readings: list[SiteReading], places: Depths) -> list[SiteReading]:
    """With the places that the page's layers have; weights, which have none, in the colour of no layer."""
    at = {name: place for place, name in places.names.items()}
    return [
        replace(r, kind="training", place=0) if r.kind == "weights"
        else replace(r, place=at.get(r.site if r.layer is None else f"layer {r.layer}", r.place))
        for r in readings
    ]  # fmt: skip


def _with(places: Depths, readings: list[SiteReading]) -> Depths:
    """The places of the page, and those of sites of which there are no rows."""
    more = {r.place: r.site for r in readings if r.kind != "training" and r.place not in places.names}
    return Depths(dict(sorted((places.names | more).items())))


def _matrix(pairs: pd.DataFrame, step_of: dict[str, int]) -> Panel | None:
    """Steps × steps of one site; checkpoints stand at equal distances, whatever their steps."""
    earlier = pairs["revision"].map(step_of)
    steps = sorted({*earlier.dropna().astype(int), *pairs["step"].dropna().astype(int)})
    if not pairs["value"].notna().any():
        return None
    at = {step: i for i, step in enumerate(steps)}
    z = np.full((len(steps), len(steps)), math.nan)
    for one, other, value in zip(earlier, pairs["step"], pairs["value"], strict=True):
        if pd.notna(one):
            z[at[int(one)], at[int(other)]] = z[at[int(other)], at[int(one)]] = value
    measured = np.isfinite(z).any(0)
    z[np.diag_indices(len(steps))] = np.where(measured, 1.0, math.nan)
    low = min(0.0, float(np.nanmin(z)))
    stops = SIGNED if low < -0.05 else AMOUNT
    low = -1.0 if low < -0.05 else 0.0
    names = [f"{step:,}" for step in steps]
    shown = [names[i] for i in spaced(list(range(len(names))), MOST_TICKS)]
    ends = [low, (low + 1) / 2, 1.0]
    figure = blank(_SQUARE)
    figure.add_heatmap(
        x=names, y=names, z=[[number(v, 3) for v in line] for line in z], zmin=low, zmax=1.0,
        hoverongaps=False,
        hovertemplate="<b>%{z:.3g}</b><br>step %{x} with step %{y}<extra></extra>",
        colorscale=[[i / (len(stops) - 1), pair[0]] for i, pair in enumerate(stops)],
        colorbar={
            "thickness": 8, "outlinewidth": 0, "tickvals": ends, "ticktext": [short(e, 2) for e in ends],
            "x": 1.02, "xpad": 4, "ypad": 0,
        },
    )  # fmt: skip
    both = {"type": "category", "tickvals": shown, "ticktext": shown, "ticks": "", "showgrid": False}
    figure.update_xaxes(title={"text": "step", "standoff": 6}, tickangle=0, showline=False, **both)
    figure.update_yaxes(title={"text": "step", "standoff": 6}, automargin=True, **both)
    figure.update_layout(margin={"t": 8, "r": 44, "b": 44})
    kind, layer = str(pairs["kind"].iloc[0]), pairs["layer"].iloc[0]
    name = kind if pd.isna(layer) else f"layer {int(layer)}"
    return Panel((PAIRS,), f"CKA of two checkpoints · {name}", "", figure)


def _correlations(own: pd.DataFrame, told: Told) -> Section | None:
    """Entropy with drift: by layer as two curves, by head as maps, along training and of the changes."""
    rows = own[own["measure"].astype(str).str.startswith("entropy_with_")]
    every = [r for r in read(rows) if r.known]
    panels, maps, named = [], [], []
    for drift in _DRIFTS:
        names = [f"entropy_with_{drift}_drift", f"entropy_with_{drift}_drift_changes"]
        shown = [r for r in every if r.measure in names and r.head is None]
        if shown:
            named += names
            panels.append(Panel((names[0],), title_of(names[0], told), "", _curves(shown, names), _KEY))
        for name in names:
            heads = [r for r in every if r.measure == name and r.head is not None]
            if heads:
                what = _STEPWISE if name.endswith("_changes") else _LEVEL
                maps.append(Panel((name,), title_of(names[0], told), f"by head, {what}", _map(heads)))
    if not panels and not maps:
        return None
    family = Family("Entropy and drift", "Does attention sharpen while queries and keys drift?", ())
    colours = (*MEASURES, *SIGNED)
    words = correlation_words(every)
    words = f"{words}\n{_CURVES}" if words else ""
    return _section("entropy-and-drift", family, words, panels, maps, colours, named, told)


def _curves(own: list[SiteReading], names: list[str]) -> go.Figure:
    figure = blank(HEIGHT)
    figure.add_hline(y=0, line={"color": SOFT[0], "width": 1.5, "dash": "dash"})
    for name, (_, (colour, _)) in zip(names, _KEY, strict=True):
        mine = sorted((r for r in own if r.measure == name), key=lambda r: r.place)
        figure.add_scatter(
            x=[r.layer for r in mine], y=[number(r.value) for r in mine], mode="lines+markers",
            line={"color": colour, "width": 2}, marker={"size": 7, "color": colour},
            hovertext=[telling(r) for r in mine], hoverinfo="text",
        )  # fmt: skip
    layers = sorted({r.layer for r in own if r.layer is not None})
    figure.update_xaxes(
        title={"text": "layer", "standoff": 6}, tickvals=spaced(layers, MOST_TICKS), tickangle=0
    )
    figure.update_yaxes(
        range=[-1.08, 1.08], tickvals=[-1, -0.5, 0, 0.5, 1], automargin=True, gridcolor=GRID[0]
    )
    return figure


def _map(own: list[SiteReading]) -> go.Figure:
    layers = sorted({r.layer for r in own if r.layer is not None})
    heads = sorted({r.head for r in own if r.head is not None})
    at = {(r.layer, r.head): r for r in own}
    cells = [[at.get((layer, head)) for head in heads] for layer in layers]
    figure = blank(52 + min(420, max(22 * len(layers), 88)))
    gap = 1 if max(len(layers), len(heads)) <= 48 else 0
    figure.add_heatmap(
        x=heads, y=layers, z=[[number(r.value, 3) if r else None for r in line] for line in cells], zmin=-1,
        zmax=1, text=[[html.escape(r.note) if r else "" for r in line] for line in cells],
        hovertemplate="<b>%{z:.3g}</b>  layer %{y} head %{x}<br>%{text}<extra></extra>", hoverongaps=False,
        colorscale=[[i / (len(SIGNED) - 1), pair[0]] for i, pair in enumerate(SIGNED)], xgap=gap, ygap=gap,
        colorbar={
            "thickness": 8, "outlinewidth": 0, "tickvals": [-1, 0, 1], "ticktext": ["−1", "0", "1"],
            "x": 1.02, "xpad": 4, "ypad": 0,
        },
    )  # fmt: skip
    plain = {"ticks": "", "showgrid": False, "tickangle": 0}
    figure.update_layout(margin={"t": 8, "b": 44, "r": 44})
    figure.update_xaxes(
        title={"text": "head", "standoff": 6}, showline=False, tickvals=spaced(heads, 8), **plain
    )
    figure.update_yaxes(
        title={"text": "layer", "standoff": 6}, autorange="reversed", tickvals=spaced(layers, 8), **plain
    )
    return figure
