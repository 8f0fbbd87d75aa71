"""Charts of an impact: each repair an arrow from anisotropy and score before to those after, and its changes.

Decided here: a repair keeps its colour in all charts, and so do the vectors as they are. The bar at the head
of an arrow is the paired 95 % interval of the change, laid on the score before. A dot of a change is full
where that interval excludes 0, and a square where the map cannot matter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from isoscope.kinds.impact.effects import AS_IT_IS, Effect, by_score
from isoscope.show.charts import Chart, Series, Told, turned
from isoscope.show.colours import Pair
from isoscope.show.figures.curves import Dot, rows_of_changes
from isoscope.show.measures import Told as Measures
from isoscope.show.measures import title_of
from isoscope.show.readings import unique

_HEIGHT = 280


def colours_of(found: Sequence[Effect]) -> dict[str, Pair]:
    """The colour of the vectors as they are and of every repair."""
    names = unique([AS_IT_IS, *(each.repair for each in found)])  # in the order of the models of other pages
    return {name: turned(at)[0] for at, name in enumerate(names)}


def arrows(found: Sequence[Effect], told: Measures) -> list[Chart]:
    """The score against the mean cosine, an arrow per repair that has both ends; one per task and site."""
    drawn = [each for each in found if each.main and not math.isnan(each.x[0] + each.after)]
    return [
        _arrows(own, found, f"{title_of(measure, told)} · {own[0].site}")
        for measure in unique(each.measure for each in drawn)
        for (_, score), own in by_score(drawn).items()
        if score == measure
    ]


def _arrows(own: Sequence[Effect], found: Sequence[Effect], title: str) -> Chart:
    """The arrows of one task at one site, and the point that they leave from."""
    looks = {name: turned(at) for at, name in enumerate(colours_of(found))}
    series = [_arrow(each, *looks[each.repair]) for each in own]
    x, y = own[0].x[0], own[0].before
    told = [Told(f"{y:.6g}", "  as it is")]
    start = Series(
        AS_IT_IS, [x], [y], style="dots", told=told, colour=looks[AS_IT_IS][0], size=8, opacity=1, keyed=False
    )
    return Chart(title, "mean cosine", "score", [*series, start], height=_HEIGHT)


def _arrow(each: Effect, colour: Pair, mark: str, dash: str) -> Series:
    low, high = each.before + each.by.low, each.before + each.by.high
    ends = [f"95 % interval {low:.6g} to {high:.6g}"] if not math.isnan(low) else []
    told = [
        Told(f"{each.before:.6g}", f"  {each.repair}", [f"at {each.x[0]:.6g}", "as it is"]),
        Told(f"{each.after:.6g}", f"  {each.repair}", [*ends, f"at {each.x[1]:.6g}", each.by.note]),
    ]
    return Series(
        each.repair, each.x, (each.before, each.after), (math.nan, low), (math.nan, high), "arrow", told,
        colour=colour, mark=mark, dash=dash, size=4,
    )  # fmt: skip


def changes(own: Sequence[Effect], colours: Mapping[str, Pair]) -> Chart:
    """One score: a dot per repair with its interval."""
    dots = []
    for row, each in enumerate(own):
        idle = each.verdict == "cannot matter"
        told = Told(each.told(), f"  {each.repair}", [each.by.note])
        dots.append(
            Dot(row, each.repair, replace(each.by, null=math.nan), colours[each.repair], told,
                hollow=each.verdict not in ("helped", "hurt"), mark="square" if idle else "circle", bar=1.6)
        )  # fmt: skip
    return rows_of_changes([each.repair for each in own], dots, "change")
