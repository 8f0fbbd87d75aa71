"""The figures that rows and points of models offer: overviews, maps, planes, clouds, sections, measures.

What has steps is drawn along them, what has heads as maps, and so on. Each section of the page has a figure,
and each measure has one by its own name. `isoscope.kinds.table` says which figures a kind of run has.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pandas as pd

from isoscope.errors import IsoscopeError
from isoscope.kinds.sweep.clouds import by_step
from isoscope.kinds.sweep.printed import PRINTED
from isoscope.kinds.sweep.rows import changes_of, read_sweep
from isoscope.plot import measured, pictures
from isoscope.plot.measured import MAPPED
from isoscope.plot.select import OF_STEPS, PLACED, measures_with_values, names_in, probed
from isoscope.results.store import RunFolder
from isoscope.show import measures as shown
from isoscope.show.charts import Chart
from isoscope.show.draw.matplotlib.sheet import Offered, Panel, Shape
from isoscope.show.figures.albums import SiteHead
from isoscope.show.figures.clouds import pulled
from isoscope.show.figures.step_axis import Changed, spaced
from isoscope.show.figures.weights.sections import WEIGHED
from isoscope.show.measures import FAMILIES, MAIN, SCALES, TOGETHER, Told, family_of, in_order, title_of
from isoscope.show.page.alarms import watch
from isoscope.show.page.training import explained
from isoscope.show.readings import PLACES, QUERY_KEY, unique
from isoscope.show.regimes import TRACES
from isoscope.show.say.words import LIVE

_NAMES = {
    "drift": "drift-and-norms", "layers": "arrangement", "sample": "neighbours",
    "live": "", "comparison": "", "training": "", "health": "",
}  # fmt: skip
"""Sections whose figure has another name, or none."""
_MOST_MODELS = 3  # of a map: one stands beside the other
_HEADED = [kind for kind in PLACED if kind not in PLACES]

_WEIGHTS = {
    "eigenvalues": ("spectrum", pictures.eigenvalues, "the eigenvalues of W of heads in the complex plane"),
    "propagation": (
        "propagation", pictures.propagation, "where the signal of heads passes, by their weights"
    ),
}  # fmt: skip
"""Figures of weights by name: the picture that they show, its chart, and one line on them."""


def of_measured(folder: RunFolder) -> list[Offered]:
    """The figures of a run of no special kind: what has steps is drawn along them."""
    rows, facts, run = folder.frame(), folder.facts(), folder.run
    own = rows[rows["revision"].fillna("") != LIVE]
    on_watch = watch(own, facts) if own["model"].nunique() == 1 else None
    alarms = [mark.step for mark in on_watch.marks if mark.new] if on_watch else []
    told = explained(run.measures, facts)
    return _of_rows(rows, folder.points(), told, run.question, alarms=alarms)


def of_sweep(folder: RunFolder) -> list[Offered]:
    """The figures of a sweep: lines along the steps with their changes marked."""
    read = read_sweep(folder)
    told = explained(folder.run.measures, read.facts)
    return _of_rows(read.rows, read.points, told, folder.run.question, changes=changes_of(read.between))


@dataclass(frozen=True)
class _Rows:
    """What is drawn, and how its measures are drawn: along steps, along layers, or as dots."""

    rows: pd.DataFrame
    told: Told
    measures: tuple[str, ...]
    along: str
    changes: Collection[Changed]
    alarms: Collection[int]

    def panel(self, *measures: str) -> Panel:
        """The panel of a measure, or of several that share one."""
        if self.along == "dots":
            return partial(measured.dots, self.rows, measures, self.told)
        if self.along == "step":
            return partial(measured.steps, self.rows, measures[0], self.told, self.changes, self.alarms)
        return partial(measured.layers, self.rows, measures if measures[1:] else measures[0], self.told)

    def panels(self, measures: Sequence[str]) -> list[Panel]:
        """One panel per measure; dots that share a scale share a panel."""
        shared = SCALES.values() if self.along == "dots" else ()
        groups = [[m for m in measures if m in group] for group in shared]
        rest = [[m] for m in measures if not any(m in group for group in groups)]
        return [self.panel(*group) for group in (*groups, *rest) if group]

    @property
    def shape(self) -> Shape:
        """Of the panels of measures."""
        return Shape(1, 2, 3, 6, height=1.2) if self.along == "dots" else Shape()

    def listed(self, measures: Sequence[str]) -> str:
        """The first measures by name, and how many more there are."""
        few = ", ".join(shown.name_of(m, self.told) for m in measures[:2])
        return f"{few} and {len(measures) - 2} more" if measures[2:] else few


def _of_rows(
    rows: pd.DataFrame,
    points: pd.DataFrame,
    told: Told,
    question: Mapping[str, object],
    *,
    changes: Collection[Changed] = (),
    alarms: Collection[int] = (),
) -> list[Offered]:
    """All figures, those that matter most first."""
    own = probed(rows)
    sited = own[own["head"].isna() & own["kind"].isin(OF_STEPS) & own["value"].notna()]
    places = sited.loc[sited["kind"] != "training", ["kind", "layer"]].drop_duplicates()
    along = "dots" if len(places) == 1 else "layer"
    along = "step" if sited["model"].nunique() == 1 and sited["step"].nunique() > 1 else along
    measures = measures_with_values(own, OF_STEPS if along == "step" else PLACED)
    of, length = _Rows(own, told, tuple(measures), along, changes, alarms), question.get("length")
    planes = _planes(of, length if isinstance(length, int) else None)
    return [
        *_overviews(of), *_comparison(of), *_heads(of), *planes, *_of_points(points), *_sections(of),
        *_weights(of), *_measures(of),
    ]  # fmt: skip


def _overviews(of: _Rows) -> list[Offered]:
    offered = []
    placed = measures_with_values(of.rows, PLACED)
    if of.along == "step":
        main = unique(m for m in (*PRINTED, *MAIN) if m in of.measures) or of.measures
        offered.append(Offered("steps", f"{of.listed(main)} along the steps", of.panels(main)))
        maps = [partial(measured.layers_by_steps, of.rows, m, of.told) for m in main if m in placed]
        wide = Shape(1, 2, 3, 6, height=1.7)
        offered += [Offered("layers-by-steps", "the same as maps of layers and steps", maps, wide)]
    main = [m for m in MAIN if m in placed] or placed
    if of.along == "dots":
        scaled = [m for group in SCALES.values() for m in group]
        first = of.panels(unique(m for m in (*scaled, *main) if m in placed))
        offered.append(Offered("values", "what was measured, beside its null", first, of.shape))
    else:
        drawn = [partial(measured.layers, of.rows, m, of.told) for m in main]
        few = ", at a few steps" if of.along == "step" else ""
        offered.append(Offered("layers", f"{of.listed(main)} along the layers{few}", drawn))
    return [one for one in offered if one.panels]


def _comparison(of: _Rows) -> list[Offered]:
    needed = {"relative_drift", "mean_cosine"} <= set(of.measures)
    if not needed or of.along != "layer" or of.rows["model"].nunique() < 2:
        return []
    asked = [m for m in ("relative_drift", "drift") if m in of.measures]
    panels = [partial(measured.scatter, of.rows, m, of.told) for m in asked]
    says = "mean cosine against drift, one dot a layer, one colour a model"
    return [Offered("comparison", says, panels, Shape(1, 2, 2, 2, height=2.3))]


def _heads(of: _Rows) -> list[Offered]:
    measures = measures_with_values(of.rows, _HEADED, heads=True)
    mapped = [m for m in MAPPED if m in measures]
    if not mapped:
        return []
    deep = int(of.rows.loc[of.rows["head"].notna(), "layer"].nunique())
    shape = Shape(1, 3, 2, 6, height=min(3.0, max(1.5, 0.9 + 0.07 * deep)), keyed=False)
    every = [panel for m in mapped for panel in _maps(of, m)]
    alone = [m for m in measures if m not in of.measures]
    return [
        Offered("heads", f"{of.listed(mapped)} of every head, as maps", every, shape),
        *(
            Offered(m, f"{title_of(m, of.told)} of every head", _maps(of, m), shape, alone=True)
            for m in alone
        ),
    ]


def _maps(of: _Rows, measure: str) -> list[Panel]:
    rows = _of_heads(of.rows, measure)
    there = set(zip(rows["model"], rows["kind"], strict=True))
    some = names_in(rows, "model")[:_MOST_MODELS]
    pairs = [(model, kind) for model in some for kind in _HEADED if (model, kind) in there]
    return [partial(_map, rows, model, measure, kind, of.told, len(pairs) > 1) for model, kind in pairs]


def _map(rows: pd.DataFrame, model: str, measure: str, kind: str, told: Told, several: bool) -> Chart:
    chart = measured.heads(rows[rows["model"] == model], measure, kind, told)
    of = " · ".join(filter(None, [model[-24:], "cross-attention" if kind.startswith("cross") else ""]))
    return chart.named(f"{chart.title}\n{of}") if several else chart


def _of_heads(rows: pd.DataFrame, measure: str) -> pd.DataFrame:
    return rows[rows["head"].notna() & (rows["measure"] == measure) & rows["value"].notna()]


def _planes(of: _Rows, length: int | None) -> list[Offered]:
    measures = measures_with_values(of.rows, _HEADED, heads=True)
    offered = []
    for trace, scale in TRACES.items():
        if {trace, scale} <= set(measures):
            name, more = (
                ("plane", "") if trace == "trace" else ("plane-on-data", ", the inputs’ increments in")
            )
            models = names_in(_of_heads(of.rows, trace), "model")
            weighed = of.rows[of.rows["kind"].isin(QUERY_KEY)]
            rows = {model: weighed[weighed["model"] == model] for model in models}
            panels = [
                partial(measured.plane, own, trace, length, model if len(models) > 1 else "")
                for model, own in rows.items()
            ]
            says = f"every head by trace and scale of W, in the regimes{more}"
            offered.append(Offered(name, says, panels, Shape(1, min(2, len(models)), 1, 4, height=3.0)))
    return offered


def _of_points(points: pd.DataFrame) -> list[Offered]:
    """Clouds where queries and keys were kept, spectra where weights were."""
    offered = []
    try:
        last = pictures.of_attention(points)
        shared = pulled(last[last["picture"] == "shared"])
    except IsoscopeError:
        shared = []
    moving = by_step(points)
    if shared and len(moving):
        offered.append(_moving(points, sorted(set(moving["unit"])), sorted(shared[:4])))
    elif shared:
        panels = [partial(pictures.cloud, points, at, head, kind=kind) for kind, at, head in shared]
        says = "queries and keys of heads, those that lie furthest from the origin first"
        offered.append(Offered("clouds", says, panels, Shape(2, 4, 4, 8, height=1.75)))
    for name, (picture, chart, says) in _WEIGHTS.items():
        heads = pictures.heads_of(pictures.of_weights(points, picture))
        each = [partial(chart, points, *head) for head in spaced(heads, 6)]
        offered += [Offered(name, says, each, Shape(1, 3, 2, 6, height=1.9))] if each else []
    return offered


def _moving(points: pd.DataFrame, units: list[str], shown: list[SiteHead]) -> Offered:
    """One line of panels per head, one column per step."""
    some = spaced([int(unit.removeprefix("step ")) for unit in units], 3)
    panels = [
        partial(_cloud_at, points, head, step, head == shown[0], step == some[0])
        for head in shown
        for step in some
    ]
    across, every = len(some), len(panels)
    shape = Shape(across, across, every, every, height=1.15, lifted=False)
    return Offered("clouds", "queries and keys of a few heads, step by step, on shared axes", panels, shape)


def _cloud_at(points: pd.DataFrame, head: SiteHead, step: int, top: bool, left: bool) -> Chart:
    chart = pictures.cloud(points, head[1], head[2], kind=head[0], step=step)
    title, name = f"step {step:,}" if top else "", f"layer {head[1]}\nhead {head[2]}" if left else ""
    return replace(chart, title=title, y=replace(chart.up, name=name))


def _sections(of: _Rows) -> list[Offered]:
    """A figure per section of the page: its measures, one of several forms of a thing."""
    offered = []
    grouped = of.along == "layer" and of.rows["model"].nunique() == 1
    for family in unique([*FAMILIES, *(family_of(m, of.told) for m in of.measures)]):
        own = in_order([m for m in of.measures if family_of(m, of.told) == family], family)
        own = [m for m in own if shown.how_shown(m).instead not in own]
        name = _NAMES.get(family, family.replace(" ", "-").replace("_", "-"))
        if own and name:
            says = FAMILIES[family].asks if family in FAMILIES else of.listed(own)
            panels = _grouped(of, own, family) if grouped else of.panels(own)
            offered.append(Offered(name, says[:1].lower() + says[1:], panels, of.shape))
    return offered


def _grouped(of: _Rows, measures: Sequence[str], family: str) -> list[Panel]:
    """Measures made to be compared share a panel."""
    there = [m for m in of.measures if shown.shown_in(m, family, of.told)]
    groups = {m: [one for one in group if one in there] for group in TOGETHER.values() for m in group}
    return [of.panel(*group) for group in dict.fromkeys(tuple(groups.get(m, [m])) for m in measures)]


def _weights(of: _Rows) -> list[Offered]:
    """Vocabularies and the final norm, which stand at no layer."""
    offered = []
    for name in ("vocabulary", "norm"):
        kinds = [kind for kind in names_in(of.rows, "kind") if WEIGHED[name](kind)]
        measures = sorted(in_order(measures_with_values(of.rows, kinds), name), key=lambda m: m not in MAIN)
        panels = [partial(measured.sites, of.rows, m, of.told, kinds) for m in measures]
        says, shape = FAMILIES[name].asks, Shape(1, 2, 3, 6, height=0.6 + 0.17 * max(1, len(kinds)))
        offered += [Offered(name, says[:1].lower() + says[1:], panels, shape)] if panels else []
    return offered


def _measures(of: _Rows) -> list[Offered]:
    """One figure per measure, by its name."""
    words = {"step": "along the steps", "layer": "along the layers", "dots": "beside its null"}[of.along]
    return [
        Offered(m, f"{title_of(m, of.told)} {words}", [of.panel(m)], of.shape, alone=True)
        for m in of.measures
    ]
