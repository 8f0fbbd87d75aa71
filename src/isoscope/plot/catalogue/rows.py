"""The figures that rows and points of models offer: overviews, maps, planes, clouds, sections, measures."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial

import pandas as pd

from isoscope.kinds.sweep.printed import PRINTED
from isoscope.plot.along_layers import layers_chart
from isoscope.plot.along_steps import OF_STEPS, steps_chart
from isoscope.plot.catalogue.points import of_points
from isoscope.plot.comparison import scatter_chart
from isoscope.plot.maps import MAPPED, heads_chart, layers_by_steps_chart
from isoscope.plot.planes import plane_chart
from isoscope.plot.select import PLACED, measures_with_values, probed
from isoscope.plot.values import dots_chart, sites_chart
from isoscope.show.charts import Chart
from isoscope.show.draw.matplotlib.sheet import Offered, Panel, Shape
from isoscope.show.figures.step_axis import Changed
from isoscope.show.figures.weights.norms import is_norm
from isoscope.show.figures.weights.vocabulary import VOCABULARY
from isoscope.show.measures import (
    FAMILIES,
    MAIN,
    SCALES,
    TOGETHER,
    Told,
    family_of,
    how_shown,
    in_order,
    name_of,
    shown_in,
    title_of,
)
from isoscope.show.readings import QUERY_KEY
from isoscope.show.regimes import TRACES

_DOTS = Shape(1, 2, 3, 6, height=1.2)
_NAMES = {
    "drift": "drift-and-norms",
    "layers": "arrangement",
    "sample": "neighbours",
    "live": "",
    "comparison": "",
    "training": "",
    "health": "",
}
"""Sections whose figure has another name, or none."""
_MOST_MODELS = 3  # of a map: one stands beside the other


@dataclass(frozen=True)
class _Rows:
    """What is drawn, and how its measures are drawn: along steps, along layers, or as dots."""

    rows: pd.DataFrame
    told: Told
    there: tuple[str, ...]
    along: str
    changes: Collection[Changed]
    alarms: Collection[int]

    def panel(self, measure: str) -> Panel:
        """The panel of one measure."""
        if self.along == "step":
            return partial(steps_chart, self.rows, measure, self.told, self.changes, self.alarms)
        if self.along == "layer":
            return partial(layers_chart, self.rows, measure, self.told)
        return partial(dots_chart, self.rows, [measure], self.told)

    def panels(self, measures: Sequence[str]) -> list[Panel]:
        """One panel a measure; dots that share a scale share a panel."""
        if self.along != "dots":
            return [self.panel(m) for m in measures]
        groups = [[m for m in measures if m in group] for group in SCALES.values()]
        rest = [[m] for m in measures if not any(m in group for group in groups)]
        return [partial(dots_chart, self.rows, group, self.told) for group in (*groups, *rest) if group]

    @property
    def shape(self) -> Shape:
        """Of the panels of measures."""
        return _DOTS if self.along == "dots" else Shape()


def of_rows(
    rows: pd.DataFrame,
    points: pd.DataFrame,
    told: Told,
    *,
    length: int | None = None,
    changes: Collection[Changed] = (),
    alarms: Collection[int] = (),
) -> list[Offered]:
    """All figures, those that matter most first."""
    own = probed(rows)
    sited = own[own["head"].isna() & own["kind"].isin(OF_STEPS) & own["value"].notna()]
    single = sited["model"].nunique() == 1
    along = "step" if single and sited["step"].nunique() > 1 else "layer"
    places = sited.loc[sited["kind"] != "training", ["kind", "layer"]].drop_duplicates()
    along = "dots" if along == "layer" and len(places) == 1 else along
    kinds = OF_STEPS if along == "step" else PLACED
    there = tuple(measures_with_values(own, kinds))
    of = _Rows(own, told, there, along, changes, alarms)
    return [
        *_overviews(of),
        *_comparison(of),
        *_heads(of, length),
        *of_points(points),
        *_sections(of),
        *_weights(of),
        *_measures(of),
    ]


def _overviews(of: _Rows) -> list[Offered]:
    made = []
    if of.along == "step":
        main = [m for m in (*PRINTED, *MAIN) if m in of.there]
        main = list(dict.fromkeys(main)) or list(of.there)
        made.append(Offered("steps", f"{_listed(main, of.told)} along the steps", of.panels(main)))
        mapped = [m for m in main if m in measures_with_values(of.rows, PLACED)]
        maps: list[Panel] = [partial(layers_by_steps_chart, of.rows, m, of.told) for m in mapped]
        wide = Shape(1, 2, 3, 6, height=1.7)
        made += (
            [Offered("layers-by-steps", "the same as maps of layers and steps", maps, wide)] if maps else []
        )
    placed = measures_with_values(of.rows, PLACED)
    main = [m for m in MAIN if m in placed] or placed
    if of.along == "dots" and main:
        scaled = [m for group in SCALES.values() for m in group]
        first = list(dict.fromkeys(m for m in (*scaled, *main) if m in placed))
        made.append(Offered("values", "what was measured, beside its null", of.panels(first), _DOTS))
    elif main:
        drawn: list[Panel] = [partial(layers_chart, of.rows, m, of.told) for m in main]
        few = ", at a few steps" if of.along == "step" else ""
        made.append(Offered("layers", f"{_listed(main, of.told)} along the layers{few}", drawn))
    return made


def _comparison(of: _Rows) -> list[Offered]:
    needed = {"relative_drift", "mean_cosine"} <= set(of.there)
    if not needed or of.along != "layer" or of.rows["model"].nunique() < 2:
        return []
    asked = [m for m in ("relative_drift", "drift") if m in of.there]
    panels: list[Panel] = [partial(scatter_chart, of.rows, m, of.told) for m in asked]
    says = "mean cosine against drift, one dot a layer, one colour a model"
    return [Offered("comparison", says, panels, Shape(1, 2, 2, 2, height=2.3))]


def _heads(of: _Rows, length: int | None) -> list[Offered]:
    kinds = [kind for kind in PLACED if kind not in ("layer", "output", "cloud")]
    there = measures_with_values(of.rows, kinds, heads=True)
    made = []
    mapped = [m for m in MAPPED if m in there]
    if mapped:
        panels = [panel for m in mapped for panel in _maps(of, m, kinds)]
        deep = int(of.rows.loc[of.rows["head"].notna(), "layer"].nunique())
        shape = Shape(1, 3, 2, 6, height=min(3.0, max(1.5, 0.9 + 0.07 * deep)), keyed=False)
        made.append(Offered("heads", f"{_listed(mapped, of.told)} of every head, as maps", panels, shape))
        for m in there:
            if m not in of.there:
                made.append(
                    Offered(
                        m, f"{title_of(m, of.told)} of every head", _maps(of, m, kinds), shape, alone=True
                    )
                )
    for trace, scale in TRACES.items():
        if {trace, scale} <= set(there):
            models = _models(of.rows, trace)
            planes: list[Panel] = [
                partial(
                    plane_chart, _weights_of(of.rows, name), trace, length, name if len(models) > 1 else ""
                )
                for name in models
            ]
            name, more = (
                ("plane", "") if trace == "trace" else ("plane-on-data", ", the inputs’ increments in")
            )
            says = f"every head by trace and scale of W, in the regimes{more}"
            made.append(Offered(name, says, planes, Shape(1, 1 if len(models) < 2 else 2, 1, 4, height=3.0)))
    return made


def _maps(of: _Rows, measure: str, kinds: Sequence[str]) -> list[Panel]:
    rows = of.rows[of.rows["head"].notna() & (of.rows["measure"] == measure) & of.rows["value"].notna()]
    pairs = [(m, k) for m in _models(rows, measure)[:_MOST_MODELS] for k in kinds
             if ((rows["model"] == m) & (rows["kind"] == k)).any()]  # fmt: skip
    several = len(pairs) > 1
    return [partial(_map_of_heads, rows, m, measure, kind, of.told, several) for m, kind in pairs]


def _models(rows: pd.DataFrame, measure: str) -> list[str]:
    own = rows[(rows["measure"] == measure) & rows["head"].notna() & rows["value"].notna()]
    return [str(name) for name in own["model"].drop_duplicates()]


def _weights_of(rows: pd.DataFrame, model: str) -> pd.DataFrame:
    return rows[(rows["model"] == model) & rows["kind"].isin(QUERY_KEY)]


def _sections(of: _Rows) -> list[Offered]:
    """A figure a section of the page: its measures, one of several forms of a thing."""
    made = []
    families = dict.fromkeys([*FAMILIES, *(family_of(m, of.told) for m in of.there)])
    single = of.rows["model"].nunique() == 1
    for family in families:
        own = in_order([m for m in of.there if family_of(m, of.told) == family], family)
        own = [m for m in own if how_shown(m).instead not in own]
        name = _NAMES.get(family, family.replace(" ", "-").replace("_", "-"))
        if own and name:
            known = FAMILIES.get(family)
            says = known.asks if known else _listed(own, of.told)
            grouped = of.along == "layer" and single
            panels = _grouped(of, own, family) if grouped else of.panels(own)
            made.append(Offered(name, says[:1].lower() + says[1:], panels, of.shape))
    return made


def _grouped(of: _Rows, measures: Sequence[str], family: str) -> list[Panel]:
    """Measures made to be compared share a panel."""
    shown = [m for m in of.there if shown_in(m, family, of.told)]
    groups = {m: [one for one in group if one in shown] for group in TOGETHER.values() for m in group}
    found = dict.fromkeys(tuple(groups.get(m, [m])) for m in measures)
    return [of.panel(group[0]) if len(group) == 1 else partial(layers_chart, of.rows, group, of.told)
            for group in found]  # fmt: skip


def _weights(of: _Rows) -> list[Offered]:
    """Vocabularies and the final norm, which stand at no layer."""
    made = []
    kinds = [str(kind) for kind in of.rows["kind"].drop_duplicates()]
    for name, has in (("vocabulary", lambda kind: kind in VOCABULARY), ("norm", is_norm)):
        mine = [kind for kind in kinds if has(kind)]
        measures = in_order(measures_with_values(of.rows, mine), name) if mine else []
        measures = sorted(measures, key=lambda m: m not in MAIN)
        panels: list[Panel] = [partial(sites_chart, of.rows, m, of.told, mine) for m in measures]
        says = FAMILIES[name].asks
        shape = Shape(1, 2, 3, 6, height=0.6 + 0.17 * max(1, len(mine)))
        made += [Offered(name, says[:1].lower() + says[1:], panels, shape)] if panels else []
    return made


def _measures(of: _Rows) -> list[Offered]:
    """One figure a measure, by its name."""
    words = {"step": "along the steps", "layer": "along the layers", "dots": "beside its null"}[of.along]
    return [
        Offered(m, f"{title_of(m, of.told)} {words}", [of.panel(m)], of.shape, alone=True) for m in of.there
    ]


def _listed(measures: Sequence[str], told: Told) -> str:
    few = [name_of(m, told) for m in measures[:2]]
    more = len(measures) - len(few)
    return ", ".join(few) + (f" and {more} more" if more else "")


def _map_of_heads(
    rows: pd.DataFrame, model: str, measure: str, kind: str, told: Told, several: bool
) -> Chart:
    chart = heads_chart(rows[rows["model"] == model], measure, kind, told)
    of = " · ".join(filter(None, [model[-24:], "cross-attention" if kind.startswith("cross") else ""]))
    return chart.named(f"{chart.title}\n{of}") if several else chart
