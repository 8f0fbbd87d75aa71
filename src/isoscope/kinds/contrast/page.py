"""The page of a contrast: how arms differ at the same entropy or as they came, and what this is read from.

Layer 0 is the mean over layers. Decided here: an arm keeps its colour on the whole page, and nothing is drawn
beyond what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from isoscope.kinds.contrast import screen as say
from isoscope.lab.contrast.fit import Fitted
from isoscope.results.reading import Reading
from isoscope.results.store import RunFolder
from isoscope.show.charts import Chart, Ground, Hover, Series, turned
from isoscope.show.colours import GRID, Pair
from isoscope.show.figures.curves import Dot, rows_of_changes
from isoscope.show.measures import Told
from isoscope.show.page.content import Content, content
from isoscope.show.page.section import Section, panel_of, section

_DOTS = (
    "A dot is how far an arm lies from {0}, the mean over seeds, and its bar the 95 % interval: full where "
    "that leaves 0 out, else hollow."
)
_SPOKEN_OF = ("relative_drift", "mean_cosine_between", "drift_share")  # by the headline, so they stand first


def content_of(folder: RunFolder) -> Content:
    """The sections, and their page without rows of weights: there are many models'."""
    rows, found, told = folder.frame(), say.fitted(folder), folder.run.measures
    said = say.finding(found.differences, found.arms, told)
    return content(folder, contrast_sections(found, told), said, rows[rows["kind"] != "query_key"])


def contrast_sections(found: Fitted, told: Told) -> list[Section]:
    """Differences, then the trials of the mean over layers, then those of every layer, folded."""
    points, lines, differences, arms = found.points, found.lines, found.differences, found.arms
    reference = arms[0] if arms else ""
    free, colours = say.as_they_came(differences), {arm: turned(at)[0] for at, arm in enumerate(arms)}
    measures = [str(m) for m in points["measure"].drop_duplicates()]
    if not free:
        measures.sort(key=lambda m: _SPOKEN_OF.index(m) if m in _SPOKEN_OF else len(_SPOKEN_OF))
    beside = [arm for arm in arms[1:] if (differences["arm"] == arm).any()]
    whole = differences[differences["layer"] == 0]
    apart = {m: differences_chart(whole[whole["measure"] == m], beside, colours) for m in measures}
    made = section(
        "contrast", "As they came" if free else "At the same entropy",
        f"How does each arm differ from {reference}?",
        [panel_of(m, told, chart) for m, chart in apart.items()], told,
        words="\n".join([_DOTS.format(reference), *say.findings(whole, told), say.CHANCE]),
        key={arm: colours[arm] for arm in beside}, explained=measures,
    )  # fmt: skip
    for layer in sorted(points["layer"].unique()):
        here, drawn = points[points["layer"] == layer], lines[lines["layer"] == layer]
        trials = {
            m: trials_chart(here[here["measure"] == m], drawn[drawn["measure"] == m], arms)
            for m in measures
            if m != "normalised_entropy"
        }
        made += section(
            f"layer-{layer}" if layer else "trials", f"Layer {layer}" if layer else say.LAYER,
            "Every trial against the entropy of its attention",
            [panel_of(m, told, chart) for m, chart in trials.items()], told,
            words=say.span(differences[differences["layer"] == layer]), key=colours, explained=(),
            folded=bool(layer),
        )  # fmt: skip
    return made


def differences_chart(own: pd.DataFrame, arms: Sequence[str], colours: Mapping[str, Pair]) -> Chart:
    """One quantity: a dot per arm, hollow where its interval holds 0; else with the spread of its seeds."""
    dots = []
    for _, line in own[own["value"].notna() & own["arm"].isin(list(arms))].iterrows():
        low, high, bounded = say.reach(line)
        sure = bounded and not low <= 0 <= high
        arm, bar = str(line["arm"]), 1.6 if bounded else 0.8
        number = Reading(line["value"], line["n"], low=low, high=high)
        dots.append(Dot(arms.index(arm), arm, number, colours[arm], telling(line), hollow=not sure, bar=bar))
    return rows_of_changes(arms, dots, "difference")


def telling(line: pd.Series) -> Hover:
    """The hover text of a difference."""
    low, high, bounded = say.reach(line)
    seeds = f"{line['n']} seed{'' if line['n'] == 1 else 's'}"
    lines = [
        f"{'95 % interval' if bounded else 'seeds lie from'} {low:.6g} to {high:.6g}",
        seeds if pd.isna(line["at"]) else f"{seeds}, at an entropy of {line['at']:.3f}",
    ]
    return Hover(f"{line['value']:.6g}", f"  {line['arm']}", list(filter(None, [*lines, line["note"]])))


def trials_chart(points: pd.DataFrame, lines: pd.DataFrame, arms: Sequence[str]) -> Chart:
    """One quantity of one layer: points are trials, a line is the mean over the seeds of an arm."""
    x = points["entropy"].dropna()
    least, most = (float(x.min()), float(x.max())) if len(x) else (0.0, 1.0)
    shared = lines[lines["high"] < math.inf]
    grounds = []
    if len(shared) and shared["low"].max() < shared["high"].min():
        grounds = [Ground((shared["low"].max(), shared["high"].min()), (), GRID, 0.45)]
    series = []
    for at, arm in enumerate(arms):
        own, (pair, mark, dash) = lines[lines["arm"] == arm], turned(at)
        if len(own) and len(shared):
            ends = [max(least, own["low"].min()), min(most, own["high"].max())]
            y = [float((own["intercept"] + own["slope"] * end).mean()) for end in ends]
            series.append(Series(arm, ends, y, colour=pair, dash=dash, width=1.8))
        mine = points[(points["arm"] == arm) & points["entropy"].notna() & points["value"].notna()]
        told = [
            Hover(f"{value:.6g}", f" at an entropy of {entropy:.3f}", [f"{arm}, seed {seed}"])
            for value, entropy, seed in zip(mine["value"], mine["entropy"], mine["seed"], strict=True)
        ]
        at_entropy = mine["entropy"].tolist(), mine["value"].tolist()
        series.append(Series(arm, *at_entropy, style="dots", told=told, colour=pair, mark=mark, size=5))
    return Chart("", "normalised entropy, measured", "", series, grounds=grounds)
