"""Figures from rows: one small panel a measure, its interval as bars, its null dashed.

Decided here: curves run along the layers, one colour a model or one shade a step; where there is one
site only, or more than `MOST_CURVES` steps, they run along the steps instead; where there is one site
and one step there is no curve, and values stand as dots beside their null. Several models with several
steps get a panel each, on one scale. Panels carry no legend: `Drawn.key` says once what colours mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go

from isoscope.report.colours import MODELS, Pair, sequence
from isoscope.report.marks import HEIGHT, LARGE, curves, dots
from isoscope.report.readings import FAMILIES, PLACES, Reading, family_of, models, read, steps, unique

MOST_CURVES = 12
"""More steps than this are an axis, not curves."""

LOG_SPAN = 8.0
"""Counts and lengths that span more than this factor, nulls included, get a logarithmic scale."""

SCALES = {
    "Cosines": ("mean_cosine_between", "mean_cosine", "rogue_contribution", "cosine_variance"),
    "Centre": ("relative_drift",),
    "Length": ("mean_norm",),
    "Directions used": ("participation_ratio_split", "participation_ratio", "effective_rank", "rankme"),
    "Shares": ("isoscore", "top_share"),
}
"""Measures that share an axis where they stand as dots."""

TABLE_ONLY = ("drift", "stable_rank")
"""Not drawn: the first is two drawn ones multiplied, the second follows the top direction alone."""

BESIDE = {"mean_cosine_between": "mean_cosine"}
"""Drawn thin in the panel of another measure where that panel has one curve only."""

TITLES = {
    "mean_cosine_between": "Mean cosine between sequences",
    "mean_cosine": "Mean cosine, all pairs",
    "rankme": "RankMe",
    "isoscore": "IsoScore",
    "participation_ratio_split": "Participation ratio, split-half",
    "top_share": "Share of the top direction",
    "rogue_contribution": "Part of the largest dimension",
}


@dataclass(frozen=True)
class Panel:
    """One figure with the measures it shows, its heading, and what a reader must know of its scale."""

    measures: tuple[str, ...]
    heading: str
    remark: str
    figure: go.Figure


@dataclass(frozen=True)
class Drawn:
    """The panels of a family, its colours, what they mean where there are several, and panels a measure."""

    panels: tuple[Panel, ...]
    key: tuple[tuple[str, Pair], ...]
    colours: tuple[Pair, ...]
    across: int = 1


@dataclass(frozen=True)
class Plan:
    """How readings become curves: along what, and what the shade of a curve stands for."""

    along: str
    shades: tuple[str, ...]
    names: tuple[str, ...]

    def shade(self, reading: Reading) -> str:
        """What tells this reading's curve from the others of its panel."""
        if len(self.shades) < 2:
            return reading.model
        return reading.site if self.along == "step" else f"step {reading.step:,}"

    @property
    def colours(self) -> dict[str, Pair]:
        """One colour for every shade, or for every model where curves differ by model only."""
        if len(self.shades) > 1:
            return dict(zip(self.shades, sequence(len(self.shades)), strict=True))
        return {name: MODELS[i % len(MODELS)] for i, name in enumerate(self.names)}

    @property
    def facets(self) -> tuple[str, ...]:
        """The models that get a panel of their own; empty where they share one."""
        return self.names if len(self.names) > 1 and len(self.shades) > 1 else ()


def title_of(measure: str, told: Mapping[str, Mapping[str, object]]) -> str:
    """The measure's title as the run tells it, else as it is known here, else its name in words."""
    given = told.get(measure, {}).get("title") or TITLES.get(measure)
    title = str(given or measure.replace("_", " "))
    return title[:1].upper() + title[1:]


def figures(rows: pd.DataFrame, family: str, told: Mapping[str, Mapping[str, object]] | None = None) -> Drawn:
    """Draw every measure of a family that has at least one value; `told` is `run.measures`."""
    told = told or {}
    kinds = ("training",) if family == "training" else PLACES
    readings = [r for r in read(rows) if r.finite and r.kind in kinds and r.head is None]
    readings = [r for r in readings if family_of(r.measure, told) == family and r.measure not in TABLE_ONLY]
    if len(steps(readings)) > 1:
        readings = [r for r in readings if r.step is not None]
    known = FAMILIES.get(family, ())
    named = [m for m in known if any(r.measure == m for r in readings)]
    named += [m for m in unique(r.measure for r in readings) if m not in known]
    if not readings:
        return Drawn((), (), ())
    plan = _plan(readings, family)
    draw = _dots if plan.along == "dots" else _curves
    drawn = draw(readings, named, plan, told)
    key = tuple(plan.colours.items()) if len(plan.colours) > 1 else ()
    return Drawn(tuple(drawn), key, tuple(plan.colours.values()), max(1, len(plan.facets)))


def _plan(readings: list[Reading], family: str) -> Plan:
    sites = [r.site for r in sorted(readings, key=lambda r: r.place)]
    sites, along_steps, names = unique(sites), steps(readings), tuple(models(readings))
    if family == "training" or (len(along_steps) > 1 and (len(sites) == 1 or len(along_steps) > MOST_CURVES)):
        return Plan("step", tuple(sites), names)
    if len(sites) == 1:
        return Plan("dots", (), names)
    return Plan("layer", tuple(f"step {step:,}" for step in along_steps), names)


def _curves(
    readings: list[Reading], named: list[str], plan: Plan, told: Mapping[str, Mapping[str, object]]
) -> list[Panel]:
    drawn, beside = [], set()
    for measure in named:
        own = [r for r in readings if r.measure == measure]
        lone = len({plan.shade(r) for r in own}) == 1
        other = [r for r in readings if lone and r.measure == BESIDE.get(measure)]
        if measure in beside:
            continue
        beside |= {r.measure for r in other}
        log = _wants_log(own)
        range_ = _range(own + other, log)
        height = LARGE if measure == "mean_cosine_between" else HEIGHT
        for facet in plan.facets or ("",):
            shown = [r for r in own if facet in ("", r.model)]
            if not shown:
                continue
            heading = title_of(measure, told) + (f" · {facet}" if facet else "")
            remark = f"dotted: {title_of(other[0].measure, told).lower()}" if other else ""
            remark = ", ".join(filter(None, [remark, "log scale" if log else ""]))
            figure = curves(
                shown, other, plan.along, plan.shade, plan.colours, log=log, range_=range_, height=height
            )
            covered = (measure, *unique(r.measure for r in other))
            drawn.append(Panel(covered, heading, remark, figure))
    return drawn


def _dots(
    readings: list[Reading], named: list[str], plan: Plan, told: Mapping[str, Mapping[str, object]]
) -> list[Panel]:
    groups = {heading: tuple(m for m in scale if m in named) for heading, scale in SCALES.items()}
    groups |= {title_of(m, told): (m,) for m in named if not any(m in scale for scale in SCALES.values())}
    drawn = []
    for heading, group in groups.items():
        if not group:
            continue
        own = [r for r in readings if r.measure in group]
        log = _wants_log(own)
        titles = {m: title_of(m, told) for m in group}
        figure = dots(own, titles, plan.colours, log=log, range_=_range(own, log))
        drawn.append(Panel(group, heading, "log scale" if log else "", figure))
    return drawn


def _wants_log(own: list[Reading]) -> bool:
    shown = [v for r in own for v in (r.value, r.null) if math.isfinite(v)]
    return min(shown) > 0 and max(shown) > 1 and max(shown) / min(shown) > LOG_SPAN


def _range(own: list[Reading], log: bool) -> tuple[float, float]:
    shown = [v for r in own for v in (r.value, r.null, r.low, r.high) if math.isfinite(v)]
    if log:
        shown = [math.log10(v) for v in shown if v > 0]
        room = 0.06 * (max(shown) - min(shown))
        return min(shown) - room, max(shown) + room
    low, high = min(0.0, *shown), max(0.0, *shown)
    room = 0.06 * ((high - low) or 1.0)
    return low - room, high + room
