"""The figures of a contrast, of an untrained block, and of the claims of a paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from isoscope.errors import IsoscopeError
from isoscope.kinds.contrast.printed import is_driven
from isoscope.plot.blocks import BLOCK, block, passes, scores, stages, summed
from isoscope.plot.contrasts import draw_against_entropy, draw_contrast, drawable, fitted
from isoscope.results.store import RunFolder
from isoscope.show.charts import Chart
from isoscope.show.draw.matplotlib.charts import Looks, draw_chart, looks_of
from isoscope.show.draw.matplotlib.sheet import Offered, Panel, Shape
from isoscope.show.draw.matplotlib.style import folded
from isoscope.show.measures import title_of

Facts = Mapping[str, Mapping[str, object]]
_ARM = 0.19  # inches that an arm takes


def of_contrast(folder: RunFolder) -> list[Offered]:
    """Differences, trials against their entropy, and both of each quantity."""
    rows, told = folder.frame(), folder.run.measures
    if rows.empty:
        return []
    found = fitted(rows, str(folder.run.question["reference"]), _arms(folder.facts()))
    measures = drawable(found)
    flat = Shape(1, 2, 4, 8, height=0.75 + _ARM * max(2, len(found.arms) - 1), keyed=False, aligned=True)
    apart: list[Panel] = [lambda ax, m=m: draw_contrast(ax, found, m, told=told) for m in measures]  # type: ignore[misc]
    against: list[Panel] = [
        lambda ax, m=m: draw_against_entropy(ax, found, m, told=told, legend=False)  # type: ignore[misc]
        for m in measures
        if m != "normalised_entropy"
    ]
    made = []
    if len(found.arms) > 1:
        made.append(Offered("contrast", f"how each arm differs from {found.arms[0]}", apart, flat))
    driven = is_driven(found.lines) and found.points["entropy"].notna().any()
    if driven:
        made.append(Offered("trials", "every trial against the entropy of its attention", against))
    for i, measure in enumerate(measures):
        if len(found.arms) > 1:
            made.append(
                Offered(measure, f"{title_of(measure, told)} of each arm", apart[i : i + 1], flat, alone=True)
            )
    return made


def _arms(facts: Facts) -> list[str]:
    """The arms in the order in which they were asked for."""
    places = {(int(str(known["place"])), str(known["arm"])) for known in facts.values() if "place" in known}
    return [arm for _, arm in sorted(places)]


def of_block(folder: RunFolder) -> list[Offered]:
    """What the bias does; stages and passes norm by norm; the scores; and each quantity alone."""
    rows, told = folder.frame(), folder.run.measures
    if rows.empty or not rows["value"].notna().any():
        return []
    lines = summed(rows)
    norms = [str(norm) for norm in lines["norm"].drop_duplicates()]
    ends = lines[lines["kind"].isin(["layer", "attention"]) & (lines["layer"] == 1)]
    there = [str(m) for m in ends["measure"].drop_duplicates()]
    along: dict[str, Panel] = {
        m: lambda ax, m=m: block(rows, m, ax=ax, told=told, legend=False)  # type: ignore[misc]
        for m in there
    }
    first = [along[m] for m in BLOCK if m in along]
    made = [Offered("block", "what a common bias makes of vectors and attention", first)]
    staged: list[Panel] = [
        lambda ax, n=n, m=m: stages(rows, n, m, ax=ax, told=told, legend=False)  # type: ignore[misc]
        for n in norms
        for m in ("mean_cosine", "mean_norm")
    ]
    wide = Shape(1, 2, 2, 6, height=1.8)
    made.append(Offered("stages", "where in the block it happens, stage by stage", staged, wide))
    passed = lines[(lines["kind"] == "iterated") & (lines["measure"] == "mean_norm")]
    again: list[Panel] = [
        lambda ax, n=n: passes(rows, n, ax=ax, legend=False)  # type: ignore[misc]
        for n in passed["norm"].drop_duplicates()
    ]
    made += [Offered("passes", "norms as a block is fed what it gave", again, wide)] if again else []
    made += _scores(folder, norms)
    return [
        *made,
        *(Offered(m, f"{title_of(m, told)} along the bias", [along[m]], alone=True) for m in there),
    ]


def _scores(folder: RunFolder, norms: Sequence[str]) -> list[Offered]:
    """Histograms of the first seed, scores as they are and less the mean of their row."""
    points, facts = folder.points(), folder.facts()
    if points.empty:
        return []
    panels: list[Panel] = []
    for norm in norms:
        own = sorted(
            (float(str(known["bias norm"])), unit)
            for unit, known in facts.items()
            if known.get("norm") == norm and known.get("seed") == 0 and "bias norm" in known
        )
        units = {unit: f"bias {bias:g}" for bias, unit in own if (points["unit"] == unit).any()}
        for series in ("score", "within row") if units else ():
            panels.append(partial(_histogram, points, units, series, norm))
    says = "how scores are spread, as they are and less the mean of their row"
    return [Offered("scores", says, panels, Shape(1, 2, 2, 6, height=1.8))] if panels else []


def _histogram(points: Any, units: dict[str, str], series: str, norm: str, ax: Any) -> None:
    scores(points, units, series, ax=ax, legend=False)
    ax.set_title(f"norm: {norm}", loc="left")


def of_claims(folder: RunFolder) -> list[Offered]:
    """A figure a claim that was tried and has something to draw."""
    from isoscope.papers.paper import judged
    from isoscope.papers.table import paper_of

    made = []
    for each in judged(paper_of(str(folder.run.question["paper"])), folder):
        charts = each.charts()
        if charts:
            looks = looks_of(charts)
            panels: list[Panel] = [partial(_chart, chart, looks) for chart in charts]
            says = f"{each.claim.title}: {each.verdict.word}"
            made.append(Offered(each.claim.name, says, panels, Shape(1, 2, 3, 8, height=1.95)))
    if not made:
        raise IsoscopeError(f"{folder.path} holds no claim with something to draw; see its page for why.")
    return made


def _chart(chart: Chart, looks: Looks, ax: Any) -> None:
    draw_chart(ax, chart, looks)
    ax.set_title(folded(chart.title, 120), loc="left")
