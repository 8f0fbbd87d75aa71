"""The page of an impact: anisotropy against score, each repair an arrow; every change with its interval.

Decided here: a repair keeps its colour on the whole page, and so does what is there before. An arrow leads
from what is there to what a repair makes of it; the bar at its head is the paired 95 % interval of the
change, laid on the score before. In the panels of changes a dot is full where that interval excludes 0, and a
square where the map cannot matter.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from isoscope.kinds.impact.effects import (
    ACROSS,
    AS_IT_IS,
    Effect,
    effects,
    finding,
    headline,
    is_change,
    is_main,
    ordered,
    places,
)
from isoscope.results.run import Run
from isoscope.results.store import RunFolder
from isoscope.show.charts import Chart, Series
from isoscope.show.colours import INK, MODELS, SOFT
from isoscope.show.draw.plotly.charts import Look, panel
from isoscope.show.draw.plotly.marks import blank
from isoscope.show.figures.panels import Drawn, Panel
from isoscope.show.measures import Family, Told, title_of
from isoscope.show.page.page import page
from isoscope.show.page.section import Section, explanations, section_of
from isoscope.show.readings import unique

_LINE, _ENDS = 24, 64  # pixels of a repair in a panel of changes, and of its ends
_HEIGHT = 280
_CHANCE = "Of twenty intervals that should hold 0, one does not by chance."
_SIGNS = (
    "An arrow leads from the vectors as they are to what a repair makes of them; the bar at its head is the "
    "paired 95 % interval of the change. Further down a dot is full where that interval leaves 0 out, hollow "
    "where it does not, and a square where the repair cannot matter."
)
_GEOMETRY = ("directions", "drift", "spectrum")


def page_of(folder: RunFolder) -> str:
    """The text of `report.html`, from the rows that are in the folder now."""
    rows = ordered(folder.frame(), folder.run.question)
    return impact_page(folder.run, rows, folder.facts())


def impact_page(run: Run, rows: pd.DataFrame, facts: Mapping[str, Mapping[str, object]]) -> str:
    """The text of `report.html`."""
    found = effects(rows)
    shown = rows.assign(note=rows["note"].where(~is_change(rows), ""))
    sections = impact_sections(rows, run.measures)
    return page(run, shown, facts, sections=sections, said=headline(found, run.measures))


def impact_sections(rows: pd.DataFrame, told: Told) -> list[Section]:
    """Arrows, changes site by site, then the geometry along the layers."""
    found = effects(rows)
    charts = arrows(found, told)
    names = unique([AS_IT_IS, *(each.repair for each in found)])  # in the order of the models of other pages
    shared = {name: Look(MODELS[i % len(MODELS)], i // len(MODELS)) for i, name in enumerate(names)}
    repaired = {name: look for name, look in shared.items() if name != AS_IT_IS}
    sections = []
    if charts:
        family = Family("Anisotropy and score", "Does a rounder cloud serve better?", ())
        drawn = [_arrowed(chart, shared) for chart in charts]
        measures = unique([ACROSS, *(each.measure for each in found if is_main(each.measure))])
        arrowed = _section("arrows", family, drawn, shared, explanations(measures, told))
        sections.append(replace(arrowed, words=f"{finding(found, told)}\n{_SIGNS}\n{_CHANCE}"))
    there = places(found)
    for place in there:
        here = [each for each in found if each.place == place]
        measures = unique(each.measure for each in here)
        drawn = [_changes([e for e in here if e.measure == m], repaired, title_of(m, told)) for m in measures]
        drawn = [panel for panel in drawn if panel.filled]
        if not drawn:
            continue
        asks, inner = "What did each repair change, and is that sure?", place not in (there[0], there[-1])
        family = Family(here[0].site.capitalize(), asks, (), folded=inner)
        changed = [measure for measure in measures if not is_main(measure)]
        name = here[0].site.replace(" ", "-")
        sections.append(_section(name, family, drawn, repaired, explanations(changed, told)))
    of_scores = [m for m in rows["measure"].drop_duplicates() if told.get(m, {}).get("family") == "impact"]
    cloud = rows[~rows["measure"].isin(of_scores)]
    sections += [made for name in _GEOMETRY if (made := section_of(cloud, told, None, name))]
    return sections


def arrows(found: Sequence[Effect], told: Told) -> list[Chart]:
    """One chart a task and site: the score against the mean cosine, a series of two points a repair."""
    charts = []
    main = [each for each in found if is_main(each.measure) and not math.isnan(each.x[0] + each.after)]
    for measure in unique(each.measure for each in main):
        for place in places(main):
            own = [each for each in main if each.measure == measure and each.place == place]
            if own:
                title = f"{title_of(measure, told)} · {own[0].site}"
                charts.append(Chart(title, "mean cosine", "score", [_arrow(each) for each in own]))
    return charts


def _arrow(each: Effect) -> Series:
    ends = (each.before + each.by.low, each.before + each.by.high)
    return Series(
        each.repair,
        each.x,
        (each.before, each.after),
        low=(math.nan, ends[0]),
        high=(math.nan, ends[1]),
        told=("as it is", each.by.note),
    )


def _arrowed(chart: Chart, look: Mapping[str, Look]) -> Panel:
    """A chart with heads on its arrows, and the point they leave from."""
    made = panel(chart, look)
    figure = made.figure
    figure.update_layout(height=_HEIGHT)
    figure.update_traces(marker={"size": 4})
    for one in chart.series:
        (x0, x1), (y0, y1) = one.x, one.y
        figure.add_annotation(
            x=x1, y=y1, ax=x0, ay=y0, xref="x", yref="y", axref="x", ayref="y", text="", showarrow=True,
            arrowhead=2, arrowsize=1.4, arrowwidth=1.8, arrowcolor=look[one.name].pair[0],
        )  # fmt: skip
    first = chart.series[0]
    figure.add_scatter(
        x=[first.x[0]],
        y=[first.y[0]],
        mode="markers",
        marker={"color": look[AS_IT_IS].pair[0], "size": 8},
        hovertext=[f"<b>{first.y[0]:.6g}</b>  as it is"],
        hoverinfo="text",
    )
    return made


def _changes(own: Sequence[Effect], look: Mapping[str, Look], title: str) -> Panel:
    """One score: a dot a repair with its interval."""
    names = [html.escape(each.repair) for each in own]
    figure = blank(_ENDS + _LINE * len(own))
    figure.add_vline(x=0, line={"color": SOFT[0], "width": 1, "dash": "dash"})
    for name, each in zip(names, own, strict=True):
        colour = look[each.repair].pair[0]
        symbol = "square-open" if each.verdict == "cannot matter" else "circle"
        full = each.verdict in ("helped", "hurt")
        figure.add_scatter(
            x=[each.by.value],
            y=[name],
            mode="markers",
            marker={
                "color": colour,
                "size": 9,
                "symbol": symbol if full or symbol != "circle" else "circle-open",
                "line": {"width": 2, "color": colour},
            },
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [each.by.high - each.by.value],
                "arrayminus": [each.by.value - each.by.low],
                "color": colour,
                "thickness": 1.6,
                "width": 0,
            },
            hovertext=[f"<b>{each.told()}</b>  {name}<br>{html.escape(each.by.note)}"],
            hoverinfo="text",
        )
    left = 17 + 6.6 * max(map(len, names))
    figure.update_layout(margin={"l": min(left, 170), "r": 12, "t": 8, "b": 40})
    figure.update_yaxes(
        categoryorder="array", categoryarray=names, range=[len(names) - 0.5, -0.5], tickvals=names,
        tickfont={"color": INK[0]}, ticklabelstandoff=5,
    )  # fmt: skip
    figure.update_xaxes(title={"text": "change", "standoff": 8}, tickangle=0, nticks=6)
    return Panel((own[0].measure,), title, f"from {own[0].before:.3g}", figure)


def _section(
    name: str,
    family: Family,
    panels: Sequence[Panel],
    look: Mapping[str, Look],
    explained: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...],
) -> Section:
    pairs = {repair: each.pair for repair, each in look.items()}
    drawn = Drawn(tuple(panels), tuple(pairs.items()), tuple(pairs.values()))
    return Section(name, family, "", (), tuple(panels), (), drawn, explained)
