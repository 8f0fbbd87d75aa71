"""The page of an impact: anisotropy against score, each repair an arrow; every change with its interval.

Decided here: a repair keeps its colour on the whole page, and so does what is there before. An arrow leads
from what is there to what a repair makes of it; the bar at its head is the paired 95 % interval of the
change, laid on the score before. In the panels of changes a dot is full where that interval excludes 0, and a
square where the map cannot matter.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from isoscope.kinds.impact.effects import (
    ACROSS,
    AS_IT_IS,
    effects,
    finding,
    headline,
    is_change,
    is_main,
    ordered,
    places,
)
from isoscope.kinds.impact.figures import arrows, changes, colours_of
from isoscope.results.run import Run
from isoscope.results.store import RunFolder
from isoscope.show.figures.panels import Panel
from isoscope.show.measures import Family, Told, title_of
from isoscope.show.page.page import page
from isoscope.show.page.section import Section, explanations, section_of
from isoscope.show.readings import unique

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
    shared = colours_of(found)
    repaired = {name: pair for name, pair in shared.items() if name != AS_IT_IS}
    sections = []
    if charts:
        family = Family("Anisotropy and score", "Does a rounder cloud serve better?", ())
        drawn = [Panel((), chart.title, chart.remark, chart) for chart in charts]
        measures = unique([ACROSS, *(each.measure for each in found if is_main(each.measure))])
        words, told_of = f"{finding(found, told)}\n{_SIGNS}\n{_CHANCE}", explanations(measures, told)
        sections.append(Section("arrows", family, drawn, words=words, key=shared, explained=told_of))
    there = places(found)
    for place in there:
        here = [each for each in found if each.place == place]
        measures = unique(each.measure for each in here)
        drawn = []
        for m in measures:
            own = [each for each in here if each.measure == m]
            drawn.append(Panel((m,), title_of(m, told), f"from {own[0].before:.3g}", changes(own, repaired)))
        drawn = [panel for panel in drawn if panel.filled]
        if not drawn:
            continue
        asks, inner = "What did each repair change, and is that sure?", place not in (there[0], there[-1])
        family = Family(here[0].site.capitalize(), asks, (), folded=inner)
        changed = [measure for measure in measures if not is_main(measure)]
        name = here[0].site.replace(" ", "-")
        told_of = explanations(changed, told)
        sections.append(Section(name, family, drawn, key=repaired, explained=told_of))
    of_scores = [m for m in rows["measure"].drop_duplicates() if told.get(m, {}).get("family") == "impact"]
    cloud = rows[~rows["measure"].isin(of_scores)]
    sections += [made for name in _GEOMETRY if (made := section_of(cloud, told, None, name))]
    return sections
