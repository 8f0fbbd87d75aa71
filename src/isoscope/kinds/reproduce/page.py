"""The page of a reproduced paper: its claims with their verdicts on top, then a section a claim.

The page shows the verdicts and figures of a paper; rows stay in their files. A verdict has a word and a sign
(✓, ✗, ?), so that it does not depend on colour. A chart without a single number is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import jinja2
from markupsafe import Markup, escape

from isoscope.kinds.reproduce.screen import claims_of
from isoscope.papers.claims import called
from isoscope.papers.paper import Judged, headline
from isoscope.results.run import Run
from isoscope.results.store import RunFolder
from isoscope.results.trajectory import FAILED
from isoscope.show.charts import Chart, prepared
from isoscope.show.colours import GRID, INK, PAPER, SOFT, Pair
from isoscope.show.draw.plotly.charts import figure
from isoscope.show.draw.plotly.library import carried, library
from isoscope.show.figures.panels import Panel
from isoscope.show.packed import written
from isoscope.show.page.markup import asset, content_policy, embedded_json, templates
from isoscope.show.page.section import Explanation, explanations
from isoscope.show.page.tables import facts_table

_ROW, _WIDTH, _HEIGHT = 3, 2.3, 1.9  # printed panels in a row, and their inches
_SIGNS = {True: ("✓", "held"), False: ("✗", "turned"), None: ("?", "open")}
_DASHES = {"solid": "", "dash": "5 3", "dot": "1.5 2.5"}


Key = dict[str, tuple[Pair, str]]
"""The colour and the dash of each series, by name."""


@dataclass(frozen=True)
class Drawn:
    """What is told of a claim, and its panels with the key of each, or of all where it is the same."""

    told: Mapping[str, Any]
    panels: tuple[tuple[Panel, Key], ...]
    key: Key
    explained: tuple[Explanation, ...]
    sign: str
    mood: str


def page_of(folder: RunFolder) -> str:
    """The text of `report.html`, from the rows that are in the folder now."""
    paper, found = claims_of(folder)
    facts = folder.facts()
    claims = [
        {**vars(each.claim), **vars(each.verdict), "word": each.verdict.word, "charts": each.charts(),
         "notes": _notes(each, facts.get(each.claim.name, {}).get("notes", []))}
        for each in found
    ]  # fmt: skip
    return paper_page(folder.run, paper.citation, headline(found), claims, paper.absent, facts)


def files_of(folder: RunFolder) -> dict[str, bytes]:
    """The figures for print in every format, by the name of their file; one per claim."""
    return {
        f"figures/{each.claim.name}.{suffix}": body
        for each in claims_of(folder)[1]
        for suffix, body in printed_claim(each.charts()).items()
    }


def paper_page(
    run: Run,
    citation: str,
    said: str,
    claims: Sequence[Mapping[str, Any]],
    absent: Sequence[tuple[str, str]],
    facts: Mapping[str, Mapping[str, object]],
) -> str:
    """The text of `report.html`; `absent` are experiments of the paper that are not there, and why.

    A claim has the fields of `Claim` and `Verdict`, the verdict's `word`, its `charts`, and as `notes`
    remarks and the reasons of what could not be measured.
    """
    drawn = [_drawn(each, run) for each in claims]
    own = asset("page.js")
    colours = [pair for one in drawn for _, key in one.panels for pair, _ in key.values()]
    return _template().render(
        run=run,
        citation=citation,
        headline=said,
        claims=drawn,
        absent=[(name, _coded(why)) for name, why in absent],
        question=facts_table(run.question),
        versions=facts_table(run.versions),
        facts=[
            (unit, facts_table(known, without=("notes", "title", "expected", "said", "verdict")))
            for unit, known in facts.items()
        ],
        dashes=_DASHES,
        css=Markup(asset("page.css") + asset("paper.css")),
        library=Markup(carried()),
        script=Markup(own),
        policy=content_policy(library(), own),
        dark=embedded_json(dict([INK, SOFT, GRID, PAPER, *colours])),
        figure_json=lambda one: embedded_json(written(figure(one.chart))),
    )


def _drawn(told: Mapping[str, Any], run: Run) -> Drawn:
    charts = prepared([chart for chart in told["charts"] if chart.filled])
    keys = [{one.name: (one.colour or SOFT, one.dash) for one in chart.series} for chart in charts]
    panels = tuple(
        (Panel((), chart.title, chart.remark, chart), key) for chart, key in zip(charts, keys, strict=True)
    )
    several = [key for key in keys if len(key) > 1]
    largest = max(several, key=len, default={})
    shared = largest if len(several) > 1 and all(key.items() <= largest.items() for key in several) else {}
    explained = explanations(told["measures"], run.measures)
    return Drawn(told, panels, shared, explained, *_SIGNS[told["held"]])


def printed_claim(charts: Sequence[Chart]) -> dict[str, bytes]:
    """The charts of a claim as a paper prints them, in every format by suffix."""
    from isoscope.show.draw.matplotlib.sheet import in_rows, printed

    return printed(in_rows(prepared(charts), _ROW), (_WIDTH, _HEIGHT), more=(0.0, 0.3))


def _coded(text: str) -> Markup:
    """Escaped, with what stands between backticks set as code.

    >>> _coded("see `a<b`")
    Markup('see <code>a&lt;b</code>')
    """
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


@cache
def _template() -> jinja2.Template:
    own = templates()
    own.filters["coded"] = _coded
    return own.get_template("paper.html")


def _notes(each: Judged, noted: object) -> list[str]:
    """Remarks of the experiment, and the reasons of what could not be measured."""
    lost = each.rows[each.rows["measure"] == FAILED]
    places = zip(lost["model"], lost["revision"], lost["note"], strict=True)
    reasons = [f"{called(model, revision)}: {why}" for model, revision, why in places]
    return list(dict.fromkeys([*map(str, noted if isinstance(noted, list) else []), *reasons]))
