"""The page of an impact: anisotropy against score, each repair an arrow; every change with its interval."""

from __future__ import annotations

from isoscope.kinds.impact import effects as impact
from isoscope.kinds.impact.figures import arrows, changes, colours_of
from isoscope.results.store import RunFolder
from isoscope.show.figures.panels import Panel
from isoscope.show.measures import Family, title_of
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
    rows = impact.ordered(folder)
    shown = rows.assign(note=rows["note"].where(rows["about"].fillna("") == "", ""))
    said = impact.headline(impact.effects(rows), folder.run.measures)
    return page(folder.run, shown, folder.facts(), sections=sections_of(folder), said=said)


def sections_of(folder: RunFolder) -> list[Section]:
    """Arrows, changes site by site, then the geometry along the layers."""
    rows, told = impact.ordered(folder), folder.run.measures
    found, sections = impact.effects(rows), list[Section]()
    shared, sites = colours_of(found), impact.places(found)
    repaired = {name: pair for name, pair in shared.items() if name != impact.AS_IT_IS}
    charts = arrows(found, told)
    if charts:
        family = Family("Anisotropy and score", "Does a rounder cloud serve better?", ())
        panels = [Panel((), chart.title, chart.remark, chart) for chart in charts]
        main = unique([impact.ACROSS, *(each.measure for each in found if each.main)])
        words, explained = f"{impact.finding(found, told)}\n{_SIGNS}\n{_CHANCE}", explanations(main, told)
        sections.append(Section("arrows", family, panels, words=words, key=shared, explained=explained))
    scores = impact.by_score(found)
    for site in sites:
        here = {measure: effects for (place, measure), effects in scores.items() if place == site}
        panels = [
            Panel((m,), title_of(m, told), f"from {effects[0].before:.3g}", changes(effects, repaired))
            for m, effects in here.items()
        ]
        panels = [panel for panel in panels if panel.filled]
        if panels:
            name = next(iter(here.values()))[0].site
            asks, inner = "What did each repair change, and is that sure?", site not in (sites[0], sites[-1])
            family = Family(name.capitalize(), asks, (), folded=inner)
            explained = explanations([m for m, own in here.items() if not own[0].main], told)
            name = name.replace(" ", "-")
            sections.append(Section(name, family, panels, key=repaired, explained=explained))
    scored = [m for m in rows["measure"].unique() if told.get(m, {}).get("family") == "impact"]
    cloud = rows[~rows["measure"].isin(scored)]
    return sections + [made for name in _GEOMETRY if (made := section_of(cloud, told, None, name))]
