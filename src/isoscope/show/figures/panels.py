"""Figures from rows: a panel per measure, along layers or steps or as dots, with its interval and its null.

Several models with several steps get a panel each, on one scale, as do self-attention and cross-attention.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, product

import pandas as pd

from isoscope.show.charts import HEIGHT, LARGE, Axis, Chart
from isoscope.show.colours import CURVES, MEASURES, MODELS, Pair, sequence
from isoscope.show.figures.curves import Dot, curves, range_of, rows_of_dots, telling, wants_log
from isoscope.show.measures import (
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
from isoscope.show.readings import ATTENTION, PLACES, QUERY_KEY, SiteReading, models, read, steps, unique

LARGEST = "mean_cosine_between"  # the measure whose panel is the largest: the headline speaks of it
MOST_CURVES = 12  # more steps than this are an axis, not curves
APART = 0.01  # curves of measures in one panel stand so much of the axis aside: about four pixels

KINDS = {
    "attention": "self-attention", "cross_attention": "cross-attention",
    "query_key": "self-attention", "cross_query_key": "cross-attention",
}  # fmt: skip
"""What kinds of attention, and of its weights, are called where there are both."""

_DOT, _ENDS = 40, 44  # pixels of a row of dots, and of the axis below
_LETTERS = 22  # of a line of a row's name


@dataclass(frozen=True)
class Panel:
    """One chart with the measures it shows, its heading, what to know of its scale, and its own colours.

    `kind` is the kind of attention that it is of, where each has a panel.
    """

    measures: tuple[str, ...]
    heading: str
    remark: str
    chart: Chart
    key: tuple[tuple[str, Pair], ...] = ()
    kind: str = ""


@dataclass(frozen=True)
class Drawn:
    """The panels of a family, what their colours mean where there are several, and panels a measure."""

    panels: tuple[Panel, ...]
    key: tuple[tuple[str, Pair], ...] = ()
    across: int = 1


@dataclass(frozen=True)
class Plan:
    """How readings become curves: along what, what a curve's shade is, and kinds that get panels apart."""

    along: str
    shades: tuple[str, ...]
    models: dict[str, Pair]
    kinds: tuple[str, ...] = ("",)

    def shade(self, reading: SiteReading) -> str:
        """What tells this reading's curve from the others of its panel."""
        if len(self.shades) < 2:
            return reading.model
        return _along_steps(reading) if self.along == "step" else f"step {reading.step:,}"

    @property
    def colours(self) -> dict[str, Pair]:
        """One colour for every shade, or for every model where curves differ by model only."""
        if len(self.shades) > 1:
            return dict(zip(self.shades, sequence(len(self.shades)), strict=True))
        return self.models

    @property
    def facets(self) -> tuple[str, ...]:
        """The models that get a panel of their own; empty where they share one."""
        return tuple(self.models) if len(self.models) > 1 and len(self.shades) > 1 else ()


def figures(rows: pd.DataFrame, family: str, told: Told | None = None) -> Drawn:
    """Draw the measures of a family that have a value; `told` is `run.measures`."""
    told = told or {}
    kinds = ("training",) if family == "training" else (*PLACES, *ATTENTION, *QUERY_KEY)
    whole = read(rows[rows["head"].isna()])
    readings = [r for r in whole if r.known and r.kind in kinds and shown_in(r.measure, family, told)]
    of_family = {r.measure for r in readings if family_of(r.measure, told) == family}
    beside = {m for group in TOGETHER.values() if of_family & set(group) for m in group}
    readings = [r for r in readings if r.measure in of_family | beside]
    if len(steps(readings)) > 1:
        readings = [r for r in readings if r.step is not None]
    if not readings:
        return Drawn(())
    several = len(palette(whole)) > 1
    named = in_order((r.measure for r in readings), family)
    named = [m for m in named if how_shown(m).instead not in named]
    counted = {r.measure for r in readings if r.value or not how_shown(r.measure).says_zero}
    named = [m for m in named if m in counted] or named  # no count of nothing where there is more
    plan = _plan(readings, family, palette(whole))
    drawn = (_dots if plan.along == "dots" else _curves)(readings, named, plan, told, not several)
    keyed = (several or len(plan.colours) > 1) and not all(panel.key for panel in drawn)
    key = tuple(plan.colours.items()) if keyed else ()
    across = len(plan.models) if plan.facets or any(panel.key for panel in drawn) else 1
    return Drawn(tuple(drawn), key, across * len(plan.kinds))


def palette(readings: Iterable[SiteReading]) -> dict[str, Pair]:
    """The colour of every model that was measured, the same in all figures of a page."""
    names = models(r for r in readings if r.kind in (*PLACES, *ATTENTION, *QUERY_KEY, "training"))
    return dict(zip(names, cycle(MODELS), strict=False))


def _plan(readings: list[SiteReading], family: str, colours: dict[str, Pair]) -> Plan:
    sites = unique(_along_steps(r) for r in sorted(readings, key=lambda r: r.place))
    along_steps, names = steps(readings), {name: colours[name] for name in models(readings)}
    attended = tuple(kind for kind in KINDS if any(r.kind == kind for r in readings))
    kinds = attended if len(attended) > 1 else ("",)
    if family == "training" or (len(along_steps) > 1 and (len(sites) == 1 or len(along_steps) > MOST_CURVES)):
        return Plan("step", tuple(sites), names, kinds)
    if len(sites) == 1 and len(kinds) == 1:
        return Plan("dots", (), names)
    return Plan("layer", tuple(f"step {step:,}" for step in along_steps), names, kinds)


def _along_steps(reading: SiteReading) -> str:
    """The site as a curve along the steps is called: attention by its layer, whatever its kind."""
    return f"layer {reading.layer}" if reading.kind in KINDS else reading.site


def heading_of(title: str, model: str, kind: str) -> str:
    """The heading of a panel; model and kind of attention only where there are several."""
    return " · ".join(filter(None, [title, model, KINDS.get(kind, "")]))


def _groups(named: list[str], together: Mapping[str, Collection[str]]) -> list[tuple[str, list[str]]]:
    """The measures in order, each under the heading it shares with others or alone under none."""
    headings = {m: heading for heading, group in together.items() for m in group}
    found: dict[str, list[str]] = {}
    for measure in named:
        found.setdefault(headings.get(measure, measure), []).append(measure)
    return [(heading if len(group) > 1 else "", group) for heading, group in found.items()]


def _curves(readings: list[SiteReading], named: list[str], plan: Plan, told: Told, lone: bool) -> list[Panel]:
    alone, paired = lone and len(plan.colours) == 1, len(plan.kinds) > 1
    drawn: list[Panel] = []
    whole = [m for m in named if not (alone and how_shown(m).beside in named)]
    for heading, group in _groups(whole, TOGETHER):
        own = [r for r in readings if r.measure in group]
        other = [r for r in readings if alone and r.measure in named and how_shown(r.measure).beside in group]
        log = wants_log(own)
        draw = partial(curves, along=plan.along, up=Axis(range=range_of(own + other, log), log=log))
        dotted = f"dotted: {name_of(other[0].measure, told)}" if other else ""
        null = how_shown(group[0]).null if any(math.isfinite(r.null) for r in own) else ""
        remark = ", ".join(filter(None, [dotted, null and f"dashed: {null}", "log scale" if log else ""]))
        if len(group) > 1 and len(plan.shades) < 2 and len(plan.models) <= len(group):  # no more than apart
            labels = {m: label for m, label in TOGETHER[heading].items() if m in group}
            key = dict(zip(labels.values(), cycle(MEASURES), strict=False))
            key |= {label: pair for label, pair in CURVES.items() if label in key}
            for name, kind in product(plan.models, plan.kinds):
                shown = [r for r in own if r.model == name and kind in ("", r.kind)]
                by_measure = {label: [r for r in shown if r.measure == m] for m, label in labels.items()}
                title = heading_of(heading, "" if lone else name, kind)
                chart = draw(by_measure, key, apart=APART)
                drawn += (
                    [Panel(tuple(group), title, remark, chart, tuple(key.items()), kind)] if shown else []
                )
        elif alone and paired:
            key = dict(zip(unique(KINDS.values()), MEASURES, strict=False))
            for measure in group:
                shown = [r for r in own if r.measure == measure]
                by_kind = {name: [r for r in shown if KINDS[r.kind] == name] for name in key}
                chart = draw(by_kind, key, apart=APART)
                drawn.append(Panel((measure,), title_of(measure, told), remark, chart, tuple(key.items())))
        else:
            for measure, facet, kind in product(group, plan.facets or ("",), plan.kinds):
                shown = [r for r in own if r.measure == measure and facet in ("", r.model)]
                shown = [r for r in shown if kind in ("", r.kind)]
                by_shade = {name: [r for r in shown if plan.shade(r) == name] for name in plan.colours}
                height = LARGE if measure == LARGEST else HEIGHT
                chart = draw(by_shade, plan.colours, beside=other, height=height)
                covered = (measure, *unique(r.measure for r in other))
                title = heading_of(title_of(measure, told), facet, kind)
                drawn += [Panel(covered, title, remark, chart, kind=kind)] if shown else []
    if not paired:
        return drawn
    if plan.along == "layer":
        ends = min(r.place for r in readings) - 0.5, max(r.place for r in readings) + 0.5
        charts = [replace(one.chart, x=replace(one.chart.across, range=ends)) for one in drawn]
        drawn = [replace(one, chart=chart) for one, chart in zip(drawn, charts, strict=True)]
    return sorted(drawn, key=lambda panel: not panel.kind)  # side by side


def _dots(readings: list[SiteReading], named: list[str], plan: Plan, told: Told, lone: bool) -> list[Panel]:
    drawn, several = [], len(plan.colours) > 1
    for heading, group in _groups(named, {**SCALES, **TOGETHER}):
        own = [r for r in readings if r.measure in group]
        titles = {m: TOGETHER.get(heading, {}).get(m) or title_of(m, told) for m in group}
        titles = titles if heading or not lone else {group[0]: ""}  # its heading says it
        there = {(r.measure, r.model) for r in own}
        lines = [at for at in product(titles, plan.colours) if at in there]
        both = several and len(titles) > 1
        names = [f"{titles[m]} · {name}" if both else name if several else titles[m] for m, name in lines]
        dots = [
            Dot(lines.index((r.measure, r.model)), r.model, r, plan.colours[r.model], telling(r)) for r in own
        ]
        log = wants_log(own)
        axis = Axis(range=range_of(own, log), log=log, grid=True)
        wrapped = ["\n".join(textwrap.wrap(name, _LETTERS)) for name in names]
        chart = rows_of_dots(wrapped, dots, axis, height=_ENDS + _DOT * len(lines))
        title, remark = heading or title_of(group[0], told), "log scale" if axis.log else ""
        drawn.append(Panel(tuple(group), title, remark, chart))
    return drawn
