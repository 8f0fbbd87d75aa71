"""What makes the scores of attention differ: a stacked bar per layer, and a map of heads by their kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pandas as pd

from isoscope.show.charts import Axis, Chart, Hover, Series
from isoscope.show.colours import PARTS
from isoscope.show.figures.curves import telling
from isoscope.show.figures.maps import head_map, ticks_of
from isoscope.show.figures.panels import Panel, heading_of
from isoscope.show.measures import ANATOMY, Told, title_of
from isoscope.show.readings import ATTENTION, SiteReading, at_last, models, read, unique

KIND, NONE = "attention_kind", "no shares"
DRAWN = (*(measure for measure, _ in ANATOMY.values()), "anatomy_cross_term", KIND)


def panels(rows: pd.DataFrame, told: Told) -> list[Panel]:
    """The bars of layers and the map of heads of each model and kind of attention, at its last step."""
    every = [r for r in read(rows[rows["measure"].isin(DRAWN)]) if r.kind in ATTENTION]
    several, crossed = len(models(every)) > 1, len({r.kind for r in every}) > 1
    found = []
    for (name, kind), headed in product(product(models(every), ATTENTION), (False, True)):
        own = at_last([r for r in every if (r.model, r.kind) == (name, kind)])
        own = [r for r in own if (r.head is not None) is headed]
        if any(r.known for r in own if not headed or (r.measure == KIND and r.tag)):
            chart = _kinds(own) if headed else _bars(own)
            there = set(chart.map.classes) if chart.map else {one.name for one in chart.series}
            said = {} if headed else {part: f"{part}: {words}" for part, (_, words) in ANATOMY.items()}
            key = [(said.get(name, name), pair) for name, pair in PARTS.items() if name in there]
            title = title_of(KIND, told) if headed else "Shares of the variance of scores"
            title = heading_of(title, name if several else "", kind if crossed else "")
            remark = "by head: its largest share" if headed else "beyond 1: cross terms"
            remark += f", step {own[0].step:,}" if own[0].step is not None else ""
            found.append(Panel((KIND,) if headed else DRAWN[:-1], title, remark, chart, tuple(key)))
    return found


def _bars(own: Sequence[SiteReading]) -> Chart:
    """The four shares of every layer on each other; a grey bar, with its reason, where there are none."""
    tops, series = {r.place: 0.0 for r in own}, []
    for part, measure in zip((*ANATOMY, NONE), (*DRAWN[:4], DRAWN[0]), strict=True):
        shown = [r for r in own if r.measure == measure and r.known is (part != NONE)]
        x, y = [r.place for r in shown], [r.value if r.known else 1.0 for r in shown]
        ends, base = ([r.low for r in shown], [r.high for r in shown]), [tops[place] for place in x]
        told = [telling(r) if r.known else Hover(NONE, f"  {r.site}", [r.note]) for r in shown]
        series.append(Series(part, x, y, *ends, "stack", told, colour=PARTS[part], base=base))
        tops |= {place: at + more for place, at, more in zip(x, base, y, strict=True)}
    across = Axis("layer", (min(tops) - 0.6, max(tops) + 0.6), ticks=ticks_of(sorted(tops)))
    up = Axis(range=(0.0, 1.04 * max(1.0, *tops.values())))
    return Chart("", across, up, [one for one in series if one.x], levels=((1.0, ""),))


def _kinds(own: Sequence[SiteReading]) -> Chart:
    """The kind of every head, with its shares on hover."""
    kinds = [r if r.known else replace(r, tag=NONE) for r in own if r.measure == KIND and r.tag]
    names = [part for part in PARTS if part in {r.tag for r in kinds}]
    lines: dict[tuple[object, object], list[str]] = {}
    for r in own:
        lines.setdefault((r.layer, r.head), []).append(f"{r.measure} {r.said}" if r.known else r.note)
    told: dict[tuple[object, object], Hover] = {}
    for r in kinds:
        told[r.layer, r.head] = Hover(r.tag, f"  {r.site}", unique(lines[r.layer, r.head]))
    # the ends of the colours are the first class and the last
    chart = head_map(
        [replace(r, value=float(names.index(r.tag))) for r in kinds], 0.0, max(1.0, len(names) - 1.0)
    )
    assert chart.map is not None
    found = replace(
        chart.map, bar=(), pattern=Hover("", "layer {y} head {x}"), classes={n: PARTS[n] for n in names},
        told=chart.map.told and [[told.get((y, x)) for x in chart.map.x] for y in chart.map.y],
    )  # fmt: skip
    return replace(chart, map=found, margin={**chart.margin, "r": 12})
