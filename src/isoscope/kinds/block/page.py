"""The page of an untrained block: every quantity along the norm of the bias, sub-layers apart, histograms.

It is given `lines`: one a norm, bias, site and measure, the mean over seeds with its interval. Decided here:
a bias N stands at log(1 + N), so that 0 has a place; a norm keeps its colour on the whole page; where panels
of one norm show several stages or biases, those have shades of their own and the panel its own key.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from isoscope.kinds.block.figures import PASSED, SCORES, along_bias, histograms, passes, stages, units_of
from isoscope.kinds.block.sentences import finding, finding_of_norms
from isoscope.lab.block.seeds import over_seeds
from isoscope.results.run import Run
from isoscope.results.store import RunFolder
from isoscope.show.charts import Chart
from isoscope.show.colours import MODELS, Pair
from isoscope.show.figures.panels import Panel
from isoscope.show.measures import Family, Told, title_of
from isoscope.show.page.page import page
from isoscope.show.page.section import Section, explanations

_ENDS = (("layer", 0, "enters"), ("layer", 1, "leaves"))
_ATTENTION = (
    "normalised_entropy", "score_std", "score_std_pooled", "largest_weight", "smallest_weight", "drift_share",
    "normalised_entropy_without_drift", "score_mean",
)  # fmt: skip
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


def sections_of(folder: RunFolder) -> list[Section]:
    """The sections of the page."""
    return block_sections(over_seeds(folder.frame()), folder.points(), folder.facts(), folder.run.measures)


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
        Panel(
            (measure,),
            f"{title_of(measure, told)}: what {word}",
            "",
            along_bias(_at(lines, kind, layer, measure), "norm", colours),
        )
        for measure in ("mean_cosine", "mean_norm", "relative_drift")
        for kind, layer, word in _ENDS
    ]
    attention = [
        Panel((measure,), title_of(measure, told), "", along_bias(own, "norm", colours))
        for measure in _ATTENTION
        if len(own := _at(lines, "attention", 1, measure))
    ]
    staged = [
        _panel(measure, f"{title_of(measure, told)} · {norm}", stages(lines, norm, measure))
        for norm in norms
        for measure in ("mean_cosine", "mean_norm")
    ]
    passed = lines[lines["kind"] == PASSED]
    again = [
        _panel("mean_norm", f"Mean norm · {norm}", passes(lines, norm))
        for norm in map(str, passed["norm"].drop_duplicates())
    ]
    scores = [
        _panel("score_std", f"{title} · {norm}", histograms(points, units, series))
        for norm in norms
        if (units := units_of(facts, norm))
        for series, title in SCORES.items()
    ]
    made: tuple[tuple[str, str, str, list[Panel], Key], ...] = (
        ("attention", "Attention", "What does a common bias of its inputs make of it?", attention, colours),
        ("ends", "In and out", "What does it make of the vectors?", ends, colours),
        ("stages", "Sub-layers", "Where in the block does it happen?", staged, {}),
        ("passes", "Passes", "Where do norms lead when a block is fed what it gave?", again, {}),
        ("scores", "Scores", "How are they spread, in one sequence?", scores, {}),
    )
    words = {"ends" if passed.empty else "passes": of_norms, "attention": _HOW}
    measures = {"ends": ("mean_cosine", "mean_norm", "relative_drift"), "attention": _ATTENTION}
    return [
        Section(
            name, Family(heading, asks, ()), panels, words=words.get(name, ""),
            key=key if len(key) > 1 else {}, explained=explanations(measures.get(name, ()), told),
        )
        for name, heading, asks, every, key in made
        if (panels := [panel for panel in every if panel.filled])
    ]  # fmt: skip


def _at(lines: pd.DataFrame, kind: str, layer: int, measure: str) -> pd.DataFrame:
    return lines[(lines["kind"] == kind) & (lines["layer"] == layer) & (lines["measure"] == measure)]


def _panel(measure: str, heading: str, chart: Chart) -> Panel:
    """A panel with its own key."""
    key = {one.name: one.colour for one in chart.series if one.colour and one.keyed}
    return Panel((measure,), heading, chart.remark, chart, tuple(key.items()))
