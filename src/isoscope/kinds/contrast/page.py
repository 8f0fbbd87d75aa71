"""The page of a contrast: how arms differ at the same entropy or as they came, and what this is read from.

It is given what was fitted, three tables: `points` (one trial, layer and quantity a line), `lines` (one seed)
and `differences` from the reference; layer 0 is the mean over layers. Decided here: an arm keeps its colour
on the whole page; points are trials, a line is the mean over an arm's seeds, the common range is shaded, and
nothing is drawn beyond what was measured. Arms as they came have points and no lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from isoscope.kinds.contrast.figures import colours_of, differences_chart, trials_chart
from isoscope.kinds.contrast.fitted import fitted
from isoscope.kinds.contrast.sentences import CHANCE, LAYER, as_they_came, finding, findings, span
from isoscope.results.run import Run
from isoscope.results.store import RunFolder
from isoscope.show.figures.panels import Panel
from isoscope.show.measures import Family, Told, title_of
from isoscope.show.page.page import page
from isoscope.show.page.section import Section, explanations

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


def sections_of(folder: RunFolder) -> list[Section]:
    """The sections of the page."""
    found = fitted(folder)
    told = (found.points, found.lines, found.differences, found.arms)
    return contrast_sections(*told, folder.run.measures)


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
    colours = colours_of(arms)
    measures = [str(m) for m in points["measure"].drop_duplicates()]
    if not as_they_came(differences):
        measures = [*(m for m in _SPOKEN_OF if m in measures), *(m for m in measures if m not in _SPOKEN_OF)]
    beside = [arm for arm in arms[1:] if (differences["arm"] == arm).any()]
    found = []
    whole = differences[differences["layer"] == 0]
    apart = [
        Panel((m,), title_of(m, told), "", differences_chart(whole[whole["measure"] == m], beside, colours))
        for m in measures
        if whole[whole["measure"] == m]["value"].notna().any()
    ]
    apart = [panel for panel in apart if panel.filled]
    if apart:
        heading = "As they came" if as_they_came(differences) else "At the same entropy"
        family = Family(heading, f"How does each arm differ from {arms[0]}?", ())
        own = {arm: colours[arm] for arm in beside}
        words = "\n".join([_DOTS.format(arms[0]), *findings(whole, told), CHANCE])
        told_of = explanations(measures, told)
        found.append(Section("contrast", family, apart, words=words, key=own, explained=told_of))
    for layer in sorted(points["layer"].unique()):
        here, fitted = points[points["layer"] == layer], lines[lines["layer"] == layer]
        drawn = [
            Panel((m,), title_of(m, told), "", trials_chart(own, fitted[fitted["measure"] == m], arms))
            for m in measures
            if len(own := here[here["measure"] == m]) and m != "normalised_entropy"
        ]
        drawn = [panel for panel in drawn if panel.filled]
        if not drawn:
            continue
        name = LAYER if layer == 0 else f"Layer {layer}"
        words = span(differences[differences["layer"] == layer])
        family = Family(name, "Every trial against the entropy of its attention", (), folded=bool(layer))
        link = f"layer-{layer}" if layer else "trials"
        found.append(Section(link, family, drawn, words=words, key=colours))
    return found
