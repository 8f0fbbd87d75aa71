"""Sections on what checkpoints show together: how alike they are, entropy with drift, where changes fall."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd

from isoscope.kinds.sweep.rows import SweepRows, changes_of
from isoscope.kinds.sweep.sentences import alike_words, changes_words, correlation_words
from isoscope.show.charts import MOST_TICKS, Axis, Chart, Map, Series
from isoscope.show.charts import Told as Hover
from isoscope.show.colours import MEASURES, Pair
from isoscope.show.figures.curves import curves
from isoscope.show.figures.maps import colour_bar, head_map
from isoscope.show.figures.panels import Panel
from isoscope.show.figures.step_axis import StepAxis, across_steps, spaced
from isoscope.show.figures.trajectories import HEIGHT as SMALL
from isoscope.show.figures.trajectories import Depths, trajectory
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


def _changes(swept: SweepRows, axis: StepAxis, told: Told) -> Section | None:
    """At each step, in how many series a change may lie there."""
    found = changes_of(swept.between)
    words = changes_words(swept.between, swept.facts.get("between", {}), told)
    if not words:
        return None
    family = Family("Changes", "When does a measure jump or turn, and how sure is the place?", ())
    explained = explanations(("jump", "turn", "stray"), told)
    if not found:
        return Section("changes", family, (), words=words, explained=explained)
    x: list[float] = []
    counted: dict[str, list[int]] = {what: [] for what in ("jump", "turn")}
    for a, b in pairwise(axis.steps):
        x += [axis.at(a), axis.at(b)]
        for what, counts in counted.items():
            counts += [sum(one.what == what and one.low < b and one.high > a for one in found)] * 2
    series = [
        Series(what, x, counts, told=[Hover("", f"{n} {what}{'s'[: n != 1]}") for n in counts], colour=pair)
        for (what, counts), pair in zip(counted.items(), MEASURES, strict=False)
    ]
    up = Axis("series", floor=True, most=5)
    chart = Chart("", across_steps(axis), up, series, height=SMALL, margin={"t": 20})
    key = tuple(zip(("jump", "turn"), MEASURES, strict=False))
    panel = Panel(("jump",), "Where changes fall", "series whose interval covers the step", chart, key)
    return Section("changes", family, [panel], words=words, explained=explained)


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
            chart = trajectory(placed, axis, _with(places, placed), mapped=False)
            lines.append(Panel((measure,), title_of(measure, told), chart.remark, chart))
    if not maps and not lines:
        return None
    family = Family("Checkpoints against each other", "When is the final arrangement there?", ())
    words = alike_words(own)
    shown_places = _with(places, _placed(readings, places))
    named = [m for m in (PAIRS, *_ALONG) if (own["measure"] == m).any()]
    explained, key = explanations(named, told), dict(shown_places.key)
    return Section("checkpoints", family, lines, words=words, key=key, maps=maps, explained=explained)


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
    low = -1.0 if low < -0.05 else 0.0
    names = [f"{step:,}" for step in steps]
    ticks = [(names[i], names[i]) for i in spaced(list(range(len(names))), MOST_TICKS)]
    found = Map(
        names, names, z.tolist(), low, 1.0, Axis("step", ticks=ticks), colour_bar(low, 1.0, ()),
        signed=low < 0, pattern=Hover("{z:.3g}", "", ["step {x} with step {y}"]), digits=3,
    )  # fmt: skip
    margin = {"t": 8, "r": 44, "b": 44}
    chart = Chart("", Axis("step", ticks=ticks), "", map=found, height=_SQUARE, margin=margin)
    kind, layer = str(pairs["kind"].iloc[0]), pairs["layer"].iloc[0]
    name = kind if pd.isna(layer) else f"layer {int(layer)}"
    return Panel((PAIRS,), f"CKA of two checkpoints · {name}", "", chart)


def _correlations(own: pd.DataFrame, told: Told) -> Section | None:
    """Entropy with drift: by layer as two curves, by head as maps, along training and of the changes."""
    wanted = [name for drift in _DRIFTS for name in _named(drift)]
    rows = own[own["measure"].isin(wanted)]
    every = [r for r in read(rows) if r.known]
    panels, maps, named = [], [], []
    for drift in _DRIFTS:
        names = _named(drift)
        shown = [r for r in every if r.measure in names and r.head is None]
        if shown:
            named += names
            panels.append(Panel((names[0],), title_of(names[0], told), "", _curves(shown, names), _KEY))
        for name, what in zip(names, (_LEVEL, _STEPWISE), strict=True):
            heads = [r for r in every if r.measure == name and r.head is not None]
            if heads:
                maps.append(
                    Panel((name,), title_of(names[0], told), f"by head, {what}", head_map(heads, -1.0, 1.0))
                )
    if not panels and not maps:
        return None
    family = Family("Entropy and drift", "Does attention sharpen while queries and keys drift?", ())
    words = correlation_words(every)
    words = f"{words}\n{_CURVES}" if words else ""
    explained = explanations(named, told)
    return Section("entropy-and-drift", family, panels, words=words, maps=maps, explained=explained)


def _named(drift: str) -> list[str]:
    """The correlations of entropy with a drift: along training, and from checkpoint to checkpoint."""
    return [f"entropy_with_{drift}_drift", f"entropy_with_{drift}_drift_changes"]


def _curves(own: list[SiteReading], names: list[str]) -> Chart:
    groups = {
        label: [r for r in own if r.measure == name] for name, (label, _) in zip(names, _KEY, strict=True)
    }
    up = Axis(range=(-1.08, 1.08), ticks=[(at, f"{at:g}".replace("-", "−")) for at in (-1, -0.5, 0, 0.5, 1)])
    return curves(groups, dict(_KEY), "layer", up=up)
