"""The page of an impact: anisotropy against score, each repair an arrow; every change with its interval.

Decided here: a repair keeps its colour in all charts, and so do the vectors as they are. The bar at the head
of an arrow is the paired 95 % interval of the change, laid on the score before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from isoscope.kinds.impact import screen as impact
from isoscope.kinds.impact.screen import AS_IT_IS, Effect, by_score
from isoscope.results.store import RunFolder
from isoscope.show.charts import Chart, Hover, Series, turned
from isoscope.show.colours import Pair
from isoscope.show.figures.curves import Dot, rows_of_changes
from isoscope.show.figures.panels import Panel
from isoscope.show.measures import Told, title_of
from isoscope.show.page.content import Content, content
from isoscope.show.page.section import panel_of, section, section_of
from isoscope.show.readings import unique

_CHANCE = "Of twenty intervals that should hold 0, one does not by chance."
_SIGNS = (
    "An arrow leads from the vectors as they are to what a repair makes of them; the bar at its head is the "
    "paired 95 % interval of the change. Further down a dot is full where that interval leaves 0 out, hollow "
    "where it does not, and a square where the repair cannot matter."
)
_GEOMETRY = ("directions", "drift", "spectrum")
_HEIGHT = 280
Looks = Mapping[str, tuple[Pair, str, str]]
"""The colour, mark and dash of the vectors as they are and of every repair."""


def content_of(folder: RunFolder) -> Content:
    """Arrows, changes site by site, then the geometry along the layers."""
    rows, told = impact.ordered(folder), folder.run.measures
    found = impact.effects(rows)
    names = unique([AS_IT_IS, *(each.repair for each in found)])  # in the order of the models of other pages
    looks = {name: turned(at) for at, name in enumerate(names)}
    shared = {name: colour for name, (colour, *_) in looks.items()}
    repaired = {name: pair for name, pair in shared.items() if name != AS_IT_IS}
    sections = section(
        "arrows", "Anisotropy and score", "Does a rounder cloud serve better?",
        [Panel((), chart.title, chart.remark, chart) for chart in arrows(found, looks, told)], told,
        words=f"{impact.finding(found, told)}\n{_SIGNS}\n{_CHANCE}", key=shared,
        explained=unique([impact.ACROSS, *(each.measure for each in found if each.main)]),
    )  # fmt: skip
    scores, sites = by_score(found), unique(each.site for each in found)
    for site in sites:
        here = {measure: own for (_, measure), own in scores.items() if own[0].site == site}
        sections += section(
            site.replace(" ", "-"), site.capitalize(), "What did each repair change, and is that sure?",
            [panel_of(m, told, changes(o, repaired), f"from {o[0].before:.3g}") for m, o in here.items()],
            told, key=repaired, explained=[m for m, own in here.items() if not own[0].main],
            folded=site not in (sites[0], sites[-1]),
        )  # fmt: skip
    scored = [m for m in rows["measure"].unique() if told.get(m, {}).get("family") == "impact"]
    cloud = rows[~rows["measure"].isin(scored)]
    sections += [made for name in _GEOMETRY if (made := section_of(cloud, told, None, name))]
    shown = rows.assign(note=rows["note"].where(rows["about"].fillna("") == "", ""))
    return content(folder, sections, impact.headline(found, told), shown)


def arrows(found: Sequence[Effect], looks: Looks, told: Told) -> list[Chart]:
    """The score against the mean cosine, an arrow per repair that has both ends; one per task and site."""
    drawn = [each for each in found if each.main and not math.isnan(each.x[0] + each.after)]
    tasks, charts = unique(each.measure for each in drawn), []
    for (_, measure), own in sorted(by_score(drawn).items(), key=lambda item: tasks.index(item[0][1])):
        x, y, told_y = [own[0].x[0]], [own[0].before], [Hover(f"{own[0].before:.6g}", f"  {AS_IT_IS}")]
        start = Series(AS_IT_IS, x, y, style="dots", told=told_y, colour=looks[AS_IT_IS][0], size=8)
        start = replace(start, opacity=1, keyed=False)
        series = [*(_arrow(each, *looks[each.repair]) for each in own), start]
        title = f"{title_of(measure, told)} · {own[0].site}"
        charts.append(Chart(title, "mean cosine", "score", series, height=_HEIGHT))
    return charts


def _arrow(each: Effect, colour: Pair, mark: str, dash: str) -> Series:
    low, high = each.before + each.by.low, each.before + each.by.high
    ends = [f"95 % interval {low:.6g} to {high:.6g}"] if not math.isnan(low) else []
    told = [
        Hover(f"{each.before:.6g}", f"  {each.repair}", [f"at {each.x[0]:.6g}", "as it is"]),
        Hover(f"{each.after:.6g}", f"  {each.repair}", [*ends, f"at {each.x[1]:.6g}", each.by.note]),
    ]
    return Series(
        each.repair, each.x, (each.before, each.after), (math.nan, low), (math.nan, high), "arrow", told,
        colour=colour, mark=mark, dash=dash, size=4,
    )  # fmt: skip


def changes(own: Sequence[Effect], colours: Mapping[str, Pair]) -> Chart:
    """One score: a dot per repair with its interval."""
    dots = [
        Dot(row, each.repair, replace(each.by, null=math.nan), colours[each.repair],
            Hover(each.told(), f"  {each.repair}", [each.by.note]), each.verdict not in ("helped", "hurt"),
            "square" if each.verdict == "cannot matter" else "circle", bar=1.6)
        for row, each in enumerate(own)
    ]  # fmt: skip
    return rows_of_changes([each.repair for each in own], dots, "change")
