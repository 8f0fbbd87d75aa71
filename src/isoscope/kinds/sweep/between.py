"""Sections on what checkpoints show together: how alike they are, entropy with drift, where changes fall."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import chain, pairwise

import numpy as np
import pandas as pd

from isoscope.kinds.sweep.rows import CHANGES, STRAY, SweepRows, changes_of
from isoscope.kinds.sweep.sentences import alike_words, changes_words, correlation_words
from isoscope.show.charts import MOST_TICKS, Axis, Chart, Hover, Map, Series
from isoscope.show.colours import MEASURES, Pair
from isoscope.show.figures.curves import curves
from isoscope.show.figures.maps import colour_bar, head_map
from isoscope.show.figures.panels import Panel
from isoscope.show.figures.step_axis import StepAxis, across_steps, spaced
from isoscope.show.figures.trajectories import HEIGHT, Depths
from isoscope.show.measures import Told, title_of
from isoscope.show.page.section import Section, section
from isoscope.show.page.training import step_panel
from isoscope.show.readings import SiteReading, read

PAIRS = "cka_between"
_ALONG = ("cka_previous_checkpoint", "cka_last_checkpoint", "distance_to_last", "distance_from_previous")
_SQUARE = 380
_CURVES = (
    "That holds of straight trends: of two unrelated series that settle, 31 % reach p < .05 along training, "
    "7 to 24 % from checkpoint to checkpoint (noise of 5 %, 16 to 64 checkpoints), and more with less noise."
)
_DRIFTS = ("query", "key", "layer")
_KEY: tuple[tuple[str, Pair], ...] = (
    ("along training", MEASURES[0]), ("from checkpoint to checkpoint", MEASURES[1]),
)  # fmt: skip


def between_sections(swept: SweepRows, axis: StepAxis, places: Depths, told: Told) -> list[Section]:
    """The sections there are, in order: changes, checkpoints against each other, entropy with drift."""
    changes, checkpoints = _changes(swept, axis, told), _checkpoints(swept, axis, places, told)
    return [*changes, *checkpoints, *_correlations(swept.between, told)]


def _changes(swept: SweepRows, axis: StepAxis, told: Told) -> list[Section]:
    """At each step, in how many series a change may lie there."""
    changes = changes_of(swept.between)
    words = changes_words(swept.between, swept.facts.get("between", {}), told)
    key = tuple(zip(CHANGES, MEASURES, strict=False))
    spans = list(pairwise(axis.steps))
    x = [axis.at(step) for span in spans for step in span]
    series = []
    for what, pair in key:
        own = [one for one in changes if one.tag == what]
        counts = [sum(one.meets(a, b) for one in own) for a, b in spans for _ in range(2)]
        hover = [Hover("", f"{n} {what}{'s'[: n != 1]}") for n in counts]
        series.append(Series(what, x, counts, told=hover, colour=pair))
    up = Axis("series", floor=True, most=5)
    chart = Chart("", across_steps(axis), up, series, height=HEIGHT, margin={"t": 20})
    panel = Panel(("jump",), "Where changes fall", "series whose interval covers the step", chart, key)
    return section(
        "changes", "Changes", "When does a measure jump or turn, and how sure is the place?",
        [panel] if changes else (), told, words=words, explained=(*CHANGES, STRAY), wordy=True,
    )  # fmt: skip


def _checkpoints(swept: SweepRows, axis: StepAxis, places: Depths, told: Told) -> list[Section]:
    rows = swept.between
    pairs = rows[rows["measure"] == PAIRS].groupby(["kind", "layer"], dropna=False, sort=False)
    maps = [_matrix(group, swept.of.step_of) for _, group in pairs if group["value"].notna().any()]
    along = rows[rows["measure"].isin(_ALONG) & rows["step"].isin(axis.steps)]
    readings = _placed(read(along), places)
    lines = []
    for measure in _ALONG:
        shown = [r for r in readings if r.measure == measure]
        if any(r.known for r in shown):
            lines.append(step_panel(shown, axis, _with(places, shown), told, mapped=False))
    explained = [m for m in (PAIRS, *_ALONG) if (rows["measure"] == m).any()]
    return section(
        "checkpoints", "Checkpoints against each other", "When is the final arrangement there?", lines, told,
        words=alike_words(rows), key=dict(_with(places, readings).key), maps=maps, explained=explained,
    )  # fmt: skip


def _placed(readings: list[SiteReading], places: Depths) -> list[SiteReading]:
    """With the places that the page's layers have; weights, which have none, in the colour of no layer."""
    at = {name: place for place, name in places.names.items()}
    names = [r.site if r.layer is None else f"layer {r.layer}" for r in readings]
    return [
        replace(r, kind="training", place=0)
        if r.kind == "weights"
        else replace(r, place=at.get(name, r.place))
        for r, name in zip(readings, names, strict=True)
    ]


def _with(places: Depths, readings: list[SiteReading]) -> Depths:
    """The places of the page, and those of sites of which there are no rows."""
    more = {r.place: r.site for r in readings if r.kind != "training" and r.place not in places.names}
    return Depths(dict(sorted((places.names | more).items())))


def _matrix(pairs: pd.DataFrame, step_of: dict[str, int]) -> Panel:
    """Steps × steps of one site; checkpoints stand at equal distances, whatever their steps."""
    known = pairs.assign(earlier=pairs["revision"].map(step_of))
    steps = sorted({*known["earlier"].dropna().astype(int), *known["step"].dropna().astype(int)})
    known = known.dropna(subset=["earlier"]).drop_duplicates(["earlier", "step"], keep="last")
    half = known.pivot(index="earlier", columns="step", values="value").reindex(index=steps, columns=steps)
    z = half.combine_first(half.T).to_numpy(float, copy=True, na_value=math.nan)
    z[np.diag_indices(len(steps))] = np.where(np.isfinite(z).any(0), 1.0, math.nan)
    least = -1.0 if np.nanmin(z) < -0.05 else 0.0
    names = [f"{step:,}" for step in steps]
    axis = Axis("step", ticks=[(names[i], names[i]) for i in spaced(list(range(len(names))), MOST_TICKS)])
    pattern = Hover("{z:.3g}", "", ["step {x} with step {y}"])
    bar = colour_bar(least, 1.0, ())
    squares = Map(
        names, names, z.tolist(), least, 1.0, axis, bar, signed=least < 0, pattern=pattern, digits=3
    )
    chart = Chart("", axis, "", map=squares, height=_SQUARE, margin={"t": 8, "r": 44, "b": 44})
    kind, layer = pairs["kind"].iloc[0], pairs["layer"].iloc[0]
    name = kind if pd.isna(layer) else f"layer {layer}"
    return Panel((PAIRS,), f"CKA of two checkpoints · {name}", "", chart)


def _correlations(rows: pd.DataFrame, told: Told) -> list[Section]:
    """Entropy with drift: by layer as two curves, by head as maps, along training and of the changes."""
    names = {drift: [f"entropy_with_{drift}_drift{end}" for end in ("", "_changes")] for drift in _DRIFTS}
    readings = [r for r in read(rows[rows["measure"].isin([*chain(*names.values())])]) if r.known]
    panels, maps, explained = [], [], []
    ticks = [(at, f"{at:g}".replace("-", "−")) for at in (-1, -0.5, 0, 0.5, 1)]
    for pair in names.values():
        title, layers = title_of(pair[0], told), {}
        for name, (what, _) in zip(pair, _KEY, strict=True):
            of_name = [r for r in readings if r.measure == name]
            layers[what] = [r for r in of_name if r.head is None]
            heads = [r for r in of_name if r.head is not None]
            if heads:
                maps.append(Panel((name,), title, f"by head, {what}", head_map(heads, -1.0, 1.0)))
        if any(layers.values()):
            explained += pair
            chart = curves(layers, dict(_KEY), "layer", up=Axis(range=(-1.08, 1.08), ticks=ticks))
            panels.append(Panel((pair[0],), title, "", chart, _KEY))
    words = correlation_words(readings)
    return section(
        "entropy-and-drift", "Entropy and drift", "Does attention sharpen while queries and keys drift?",
        panels, told, words=f"{words}\n{_CURVES}" if words else "", maps=maps, explained=explained,
    )  # fmt: skip
