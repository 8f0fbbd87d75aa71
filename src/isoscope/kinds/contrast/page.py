"""The page of a contrast: how arms differ at the same entropy or as they came, and what this is read from.

It is given what was fitted, three tables: `points` (one trial, layer and quantity a line), `lines` (one seed)
and `differences` from the reference; layer 0 is the mean over layers. Decided here: an arm keeps its colour
on the whole page; points are trials, a line is the mean over an arm's seeds, the common range is shaded, and
nothing is drawn beyond what was measured. Arms as they came have points and no lines.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

import pandas as pd
import plotly.graph_objects as go

from isoscope.kinds.contrast.fitted import fitted
from isoscope.kinds.contrast.sentences import CHANCE, LAYER, as_they_came, finding, findings, span, telling
from isoscope.results.run import Run
from isoscope.results.store import RunFolder
from isoscope.show.colours import GRID, INK, MODELS, SOFT, Pair
from isoscope.show.draw.plotly.marks import HEIGHT, SYMBOLS, blank
from isoscope.show.figures.panels import Drawn, Panel
from isoscope.show.measures import Family, Told, title_of
from isoscope.show.page.page import page
from isoscope.show.page.section import Section, explanations

_LINE = 24  # pixels an arm takes in a panel of differences
_ENDS = 64
_DASHES = ("solid", "dash", "dot")
_DOTS = (
    "A dot is how far an arm lies from {0}, the mean over seeds, and its bar the 95 % interval: full where "
    "that leaves 0 out, else hollow."
)
_SPOKEN_OF = ("relative_drift", "mean_cosine_between", "drift_share")  # by the headline, so they stand first


def page_of(folder: RunFolder) -> str:
    """The text of `report.html`, from the rows that are in the folder now."""
    found = fitted(folder)
    told = (found.points, found.lines, found.differences, found.arms)
    return contrast_page(folder.run, folder.frame(), folder.facts(), *told)


def contrast_page(
    run: Run,
    rows: pd.DataFrame,
    facts: Mapping[str, Mapping[str, object]],
    points: pd.DataFrame,
    lines: pd.DataFrame,
    differences: pd.DataFrame,
    arms: Sequence[str],
) -> str:
    """The text of `report.html`; `arms` are in order, the first is the reference."""
    sections = contrast_sections(points, lines, differences, arms, run.measures)
    rows = rows[rows["kind"] != "query_key"]  # of many models' weights the sections of one would be a blur
    return page(run, rows, facts, sections=sections, said=finding(differences, arms, run.measures))


def contrast_sections(
    points: pd.DataFrame, lines: pd.DataFrame, differences: pd.DataFrame, arms: Sequence[str], told: Told
) -> list[Section]:
    """Differences, then the lines of the mean over layers, then those of every layer, folded."""
    colours = {arm: MODELS[i % len(MODELS)] for i, arm in enumerate(arms)}
    measures = [str(m) for m in points["measure"].drop_duplicates()]
    if not as_they_came(differences):
        measures = [*(m for m in _SPOKEN_OF if m in measures), *(m for m in measures if m not in _SPOKEN_OF)]
    beside = [arm for arm in arms[1:] if (differences["arm"] == arm).any()]
    found = []
    whole = differences[differences["layer"] == 0]
    apart = [
        _difference(whole[whole["measure"] == m], beside, colours, title_of(m, told))
        for m in measures
        if whole[whole["measure"] == m]["value"].notna().any()
    ]
    apart = [panel for panel in apart if panel.filled]
    if apart:
        heading = "As they came" if as_they_came(differences) else "At the same entropy"
        family = Family(heading, f"How does each arm differ from {arms[0]}?", ())
        own = {arm: colours[arm] for arm in beside}
        words = "\n".join([_DOTS.format(arms[0]), *findings(whole, told), CHANCE])
        found.append(_section("differences", family, words, apart, own, explanations(measures, told)))
    for layer in sorted(points["layer"].unique()):
        here, fitted = points[points["layer"] == layer], lines[lines["layer"] == layer]
        drawn = [
            _against_entropy(own, fitted[fitted["measure"] == m], colours, m, told)
            for m in measures
            if len(own := here[here["measure"] == m]) and m != "normalised_entropy"
        ]
        drawn = [panel for panel in drawn if panel.filled]
        if not drawn:
            continue
        name = LAYER if layer == 0 else f"Layer {layer}"
        words = span(differences[differences["layer"] == layer])
        family = Family(name, "Every trial against the entropy of its attention", (), folded=bool(layer))
        found.append(_section(f"layer-{layer}", family, words, drawn, colours, ()))
    return found


def _section(
    name: str,
    family: Family,
    words: str,
    panels: Sequence[Panel],
    colours: Mapping[str, Pair],
    explained: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...],
) -> Section:
    drawn = Drawn(tuple(panels), tuple(colours.items()), tuple(colours.values()))
    return Section(name, family, words, (), tuple(panels), (), drawn, explained)


def _difference(
    differences: pd.DataFrame, arms: Sequence[str], colours: Mapping[str, Pair], title: str
) -> Panel:
    """One quantity: a dot an arm with its interval, hollow where that holds 0 or there is none."""
    figure = blank(_ENDS + _LINE * len(arms))
    figure.add_vline(x=0, line={"color": SOFT[0], "width": 1, "dash": "dash"})
    for _, line in differences[differences["value"].notna()].iterrows():
        colour, bounded = colours[line["arm"]][0], pd.notna(line["low"])
        ends = (line["low"], line["high"]) if bounded else (line["least"], line["most"])
        sure = bounded and not ends[0] <= 0 <= ends[1]
        figure.add_scatter(
            x=[line["value"]],
            y=[html.escape(line["arm"])],
            mode="markers",
            marker={
                "color": colour,
                "size": 9,
                "symbol": "circle" if sure else "circle-open",
                "line": {"width": 2, "color": colour},
            },
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [ends[1] - line["value"]],
                "arrayminus": [line["value"] - ends[0]],
                "color": colour,
                "thickness": 1.6 if bounded else 0.8,
                "width": 0,
            },
            hovertext=[telling(line)],
            hoverinfo="text",
        )
    left = 17 + 6.6 * max(map(len, arms))
    figure.update_layout(margin={"l": min(left, 170), "r": 12, "t": 8, "b": 40})
    names = [html.escape(arm) for arm in arms]
    figure.update_yaxes(
        categoryorder="array", categoryarray=names, range=[len(names) - 0.5, -0.5], tickvals=names,
        tickfont={"color": INK[0]}, ticklabelstandoff=5,
    )  # fmt: skip
    figure.update_xaxes(title={"text": "difference", "standoff": 8}, tickangle=0, nticks=6)
    return Panel((str(differences["measure"].iloc[0]),), title, "", figure)


def _against_entropy(
    points: pd.DataFrame, lines: pd.DataFrame, colours: Mapping[str, Pair], measure: str, told: Told
) -> Panel:
    """One quantity of one layer: points are trials, a line is the mean over the seeds of an arm."""
    figure = blank(HEIGHT)
    x = points["entropy"].dropna()
    low, high = (float(x.min()), float(x.max())) if len(x) else (0.0, 1.0)
    shared = lines[lines["high"] < float("inf")]
    if len(shared) and shared["low"].max() < shared["high"].min():
        figure.add_vrect(
            x0=shared["low"].max(), x1=shared["high"].min(), fillcolor=GRID[0], opacity=0.45, line_width=0,
            layer="below",
        )  # fmt: skip
    for number, (arm, (colour, _)) in enumerate(colours.items()):
        own, turn = lines[lines["arm"] == arm], number // len(MODELS)
        if len(own) and len(shared):
            ends = [max(low, own["low"].min()), min(high, own["high"].max())]
            y = [float((own["intercept"] + own["slope"] * end).mean()) for end in ends]
            line = {"color": colour, "width": 1.8, "dash": _DASHES[turn % len(_DASHES)]}
            figure.add_scatter(x=ends, y=y, mode="lines", line=line, hoverinfo="skip")
        _add_trials(figure, points[points["arm"] == arm], arm, colour, SYMBOLS[turn % len(SYMBOLS)])
    figure.update_xaxes(title={"text": "normalised entropy, measured", "standoff": 8})
    return Panel((measure,), title_of(measure, told), "", figure)


def _add_trials(figure: go.Figure, points: pd.DataFrame, arm: str, colour: str, symbol: str) -> None:
    points = points[points["entropy"].notna() & points["value"].notna()]
    hover = [
        f"<b>{value:.6g}</b> at an entropy of {entropy:.3f}<br>{html.escape(arm)}, seed {seed}"
        for value, entropy, seed in zip(points["value"], points["entropy"], points["seed"], strict=True)
    ]
    figure.add_scatter(
        x=points["entropy"].tolist(),
        y=points["value"].tolist(),
        mode="markers",
        marker={"color": colour, "size": 5, "symbol": symbol, "opacity": 0.75},
        hovertext=hover,
        hoverinfo="text",
    )
