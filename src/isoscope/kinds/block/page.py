"""The page of an untrained block: every quantity along the norm of the bias, sub-layers apart, histograms.

It is given `lines`: one a norm, bias, site and measure, the mean over seeds with its interval. Decided here:
a bias N stands at log(1 + N), so that 0 has a place; a norm keeps its colour on the whole page; where panels
of one norm show several stages or biases, those have shades of their own and the panel its own key.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence

import pandas as pd
import plotly.graph_objects as go

from isoscope.kinds.block.sentences import finding, finding_of_norms
from isoscope.lab.block.seeds import over_seeds
from isoscope.results.run import Run
from isoscope.results.store import RunFolder
from isoscope.show.colours import MODELS, SOFT, Pair, sequence
from isoscope.show.draw.plotly.marks import HEIGHT, blank, scale
from isoscope.show.figures.panels import Drawn, Panel
from isoscope.show.measures import Family, Told, title_of
from isoscope.show.page.page import page
from isoscope.show.page.section import Section, explanations

_ENDS = (("layer", 0, "enters"), ("layer", 1, "leaves"))
_ATTENTION = (
    "normalised_entropy", "score_std", "score_std_pooled", "largest_weight", "smallest_weight", "drift_share",
    "normalised_entropy_without_drift", "score_mean",
)  # fmt: skip
_PASSED = "iterated"
_HOW = (
    "One block with random weights. To every vector that enters the same bias is added, whose norm stands "
    "below each figure; at 0 there is none. A dot is the mean over seeds, its bar the 95 % interval."
)
Key = Mapping[str, Pair]


def page_of(folder: RunFolder) -> str:
    """The text of `report.html`, from the rows that are in the folder now."""
    rows = folder.frame()
    lines = over_seeds(rows)
    said = (finding(lines), finding_of_norms(rows))
    return block_page(folder.run, rows, folder.facts(), folder.points(), lines, *said)


def block_page(
    run: Run,
    rows: pd.DataFrame,
    facts: Mapping[str, Mapping[str, object]],
    points: pd.DataFrame,
    lines: pd.DataFrame,
    said: str,
    of_norms: str,
) -> str:
    """The text of `report.html`; `said` is its headline, and `of_norms` what is said of many passes."""
    sections = block_sections(lines, points, facts, run.measures, of_norms)
    return page(run, rows, facts, sections=sections, said=said)


def block_sections(
    lines: pd.DataFrame,
    points: pd.DataFrame,
    facts: Mapping[str, Mapping[str, object]],
    told: Told,
    of_norms: str = "",
) -> list[Section]:
    """What enters and leaves, attention, sub-layers, norms under many passes, histograms of the scores."""
    norms = [str(norm) for norm in lines["norm"].drop_duplicates()]
    colours = {norm: MODELS[i % len(MODELS)] for i, norm in enumerate(norms)}
    ends = [
        _along_bias(
            _at(lines, kind, layer, measure), "norm", colours, f"{title_of(measure, told)}: what {word}"
        )
        for measure in ("mean_cosine", "mean_norm", "relative_drift")
        for kind, layer, word in _ENDS
    ]
    attention = [
        _along_bias(own, "norm", colours, title_of(measure, told))
        for measure in _ATTENTION
        if len(own := _at(lines, "attention", 1, measure))
    ]
    stages = [
        _stages(lines[(lines["norm"] == norm) & (lines["measure"] == measure)], norm, title_of(measure, told))
        for norm in norms
        for measure in ("mean_cosine", "mean_norm")
    ]
    passed = lines[lines["kind"] == _PASSED]
    again = [
        _passes(passed[(passed["norm"] == norm) & (passed["measure"] == "mean_norm")], norm)
        for norm in passed["norm"].drop_duplicates()
    ]
    made: tuple[tuple[str, str, str, list[Panel], Key], ...] = (
        ("attention", "Attention", "What does a common bias of its inputs make of it?", attention, colours),
        ("ends", "In and out", "What does it make of the vectors?", ends, colours),
        ("stages", "Sub-layers", "Where in the block does it happen?", stages, {}),
        ("passes", "Passes", "Where do norms lead when a block is fed what it gave?", again, {}),
        ("scores", "Scores", "How are they spread, in one sequence?", _histograms(points, facts, norms), {}),
    )
    words = {"ends" if passed.empty else "passes": of_norms, "attention": _HOW}
    measures = {"ends": ("mean_cosine", "mean_norm", "relative_drift"), "attention": _ATTENTION}
    return [
        _section(
            name, Family(heading, asks, ()), panels, key, measures.get(name, ()), told, words.get(name, "")
        )
        for name, heading, asks, every, key in made
        if (panels := [panel for panel in every if panel.filled])
    ]


def _section(
    name: str,
    family: Family,
    panels: Sequence[Panel],
    key: Key,
    measures: Sequence[str],
    told: Told,
    words: str,
) -> Section:
    pairs = [*key.values(), *(pair for panel in panels for _, pair in panel.key)]
    shown = tuple(key.items()) if len(key) > 1 else ()
    drawn = Drawn(tuple(panels), shown, tuple(pairs))
    return Section(name, family, words, (), tuple(panels), (), drawn, explanations(measures, told))


def _at(lines: pd.DataFrame, kind: str, layer: int, measure: str) -> pd.DataFrame:
    return lines[(lines["kind"] == kind) & (lines["layer"] == layer) & (lines["measure"] == measure)]


def _along_bias(own: pd.DataFrame, by: str, colours: Key, heading: str, *, keyed: bool = False) -> Panel:
    """Curves along the bias, one for each value of the column `by`, with their intervals over seeds."""
    figure = blank(HEIGHT)
    for name, (colour, _) in colours.items():
        mine = own[own[by] == name].sort_values("bias")
        if len(mine):
            x = [math.log1p(bias) for bias in mine["bias"]]
            _add(figure, x, mine, colour, [f"{name}, bias norm {bias:g}" for bias in mine["bias"]])
    biases = sorted(own["bias"].unique())
    ticks = {"tickvals": [math.log1p(b) for b in biases], "ticktext": [f"{b:g}" for b in biases]}
    figure.update_xaxes(title={"text": "norm of the bias", "standoff": 8}, tickangle=0, **ticks)
    figure.update_yaxes(automargin=True, nticks=6, rangemode="tozero")  # rounding is no curve
    measure = str(own["measure"].iloc[0]) if len(own) else ""
    return Panel((measure,), heading, "", figure, tuple(colours.items()) if keyed else ())


def _add(figure: go.Figure, x: list[float], own: pd.DataFrame, colour: str, names: list[str]) -> None:
    reach = (own["high"] - own["value"]).fillna(0).tolist()
    told = [
        f"<b>{value:.6g}</b>  {html.escape(name)}<br>"
        + (f"95 % interval {low:.6g} to {high:.6g}, " if not math.isnan(low) else "no interval, ")
        + f"{n} seed{'' if n == 1 else 's'}"
        for value, low, high, n, name in zip(
            own["value"], own["low"], own["high"], own["n"], names, strict=True
        )
    ]
    figure.add_scatter(
        x=x,
        y=own["value"].tolist(),
        mode="lines+markers",
        line={"color": colour, "width": 1.8},
        marker={"color": colour, "size": 6},
        error_y={"type": "data", "array": reach, "color": colour, "thickness": 1.4, "width": 0},
        hovertext=told,
        hoverinfo="text",
    )


def _stages(own: pd.DataFrame, norm: str, title: str) -> Panel:
    """One quantity at every stage of the block, along the bias."""
    own = own[~own["kind"].isin((_PASSED, "attention"))]
    named = own["kind"].where(own["kind"] != "layer", own["layer"].map({0: "enters", 1: "leaves"}))
    own = own.assign(stage=named.str.replace("_", " "))
    inner = [str(stage) for stage in own["stage"].drop_duplicates() if stage not in ("enters", "leaves")]
    stages = ["enters", *inner, "leaves"]
    colours = dict(zip(stages, sequence(len(stages)), strict=True))
    return _along_bias(own, "stage", colours, f"{title} · {norm}", keyed=True)


def _passes(own: pd.DataFrame, norm: str) -> Panel:
    """Mean norms pass by pass, a curve for each bias."""
    figure = blank(HEIGHT)
    biases = sorted(own["bias"].unique())
    key = {f"bias {bias:g}": pair for bias, pair in zip(biases, sequence(len(biases)), strict=True)}
    for bias, (name, (colour, _)) in zip(biases, key.items(), strict=True):
        mine = own[own["bias"] == bias].sort_values("layer")
        _add(figure, [float(at) for at in mine["layer"]], mine, colour, [name] * len(mine))
    figure.update_xaxes(title={"text": "passes", "standoff": 8}, tickangle=0)
    there = [float(value) for value in own["value"] if math.isfinite(value)]
    wide = len(there) > 0 and min(there) > 0
    if wide:
        figure.update_yaxes(**scale(True, (math.log10(min(there)) - 0.1, math.log10(max(there)) + 0.1)))
    figure.update_yaxes(automargin=True, nticks=6)
    return Panel(
        ("mean_norm",), f"Mean norm · {norm}", "log scale" if wide else "", figure, tuple(key.items())
    )


def _histograms(
    points: pd.DataFrame, facts: Mapping[str, Mapping[str, object]], norms: Sequence[str]
) -> list[Panel]:
    """The histograms of the first seed: the scores as they are, and less the mean of their row."""
    known = {unit: (told.get("norm"), float(str(told.get("bias norm", "nan"))), told.get("seed"))
             for unit, told in facts.items()}  # fmt: skip
    panels = []
    for norm in norms:
        units = sorted((bias, unit) for unit, (own, bias, seed) in known.items() if own == norm and seed == 0)
        key = dict(zip([f"bias {bias:g}" for bias, _ in units], sequence(len(units)), strict=True))
        for series, title in (("score", "Scores"), ("within row", "Scores less the mean of their row")):
            figure = blank(HEIGHT)
            for (_, unit), (name, (colour, _)) in zip(units, key.items(), strict=True):
                own = points[(points["unit"] == unit) & (points["series"] == series)]
                line = {"color": colour, "width": 1.6, "shape": "hvh"}
                figure.add_scatter(
                    x=own["x"].tolist(),
                    y=own["y"].tolist(),
                    mode="lines",
                    line=line,
                    name=name,
                    hoverinfo="name",
                )
            figure.add_vline(x=0, line={"color": SOFT[0], "width": 1, "dash": "dash"})
            figure.update_xaxes(title={"text": "score", "standoff": 8}, tickangle=0)
            figure.update_yaxes(type="log", automargin=True, title={"text": "density"})
            panels.append(Panel(("score_std",), f"{title} · {norm}", "log scale", figure, tuple(key.items())))
    return panels
