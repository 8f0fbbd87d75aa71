"""A reproduced paper on the terminal and on its page: its claims with their verdicts, then a section a claim.

A verdict has a word and a sign (✓, ✗, ?), so that it does not depend on colour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from isoscope.kinds.screen import WIDTH, Cell, Screen, Table, headed
from isoscope.papers.claims import called
from isoscope.papers.paper import Judged, Paper, headline, judged
from isoscope.papers.table import paper_of
from isoscope.results.run import Run
from isoscope.results.store import RunFolder
from isoscope.results.trajectory import FAILED
from isoscope.show.charts import prepared
from isoscope.show.colours import SOFT, Pair
from isoscope.show.figures.panels import Panel
from isoscope.show.page.content import Content
from isoscope.show.page.section import Explanation, Section, explanations, section

_COLUMNS = headed(("claim", "expected", "found", "verdict"), folds=True)
_SIGNS = {True: ("✓", "held", "green"), False: ("✗", "turned", "red"), None: ("?", "open", "yellow")}
_DASHES = {"solid": "", "dash": "5 3", "dot": "1.5 2.5"}
_SHOWN_ELSEWHERE = ("notes", "title", "expected", "said", "verdict")
Key = dict[str, tuple[Pair, str]]
"""The colour and the dash of each series, by name."""


def claims_of(folder: RunFolder) -> tuple[Paper, list[Judged]]:
    """The paper, and every claim of it that the folder has."""
    paper = paper_of(str(folder.run.question["paper"]))
    return paper, judged(paper, folder)


def screen_of(folder: RunFolder, width: int = WIDTH) -> Screen:
    """The table of claims and how many held."""
    _, found = claims_of(folder)
    lines, verdicts, said = [], [], headline(found)
    for claim, verdict in ((each.claim, each.verdict) for each in found):
        *_, colour = _SIGNS[verdict.held]
        lines.append((claim.title, claim.expected, verdict.said, Cell(verdict.word, colour)))
        told = {"claim": claim.name, "expected": claim.expected, "verdict": verdict.word}
        verdicts.append({**told, "found": f"{verdict.said} {verdict.details}".strip()})
    table = Table(_COLUMNS, tuple(lines), rules=frozenset(range(1, len(found))))
    return Screen((table, said), json={"verdicts": verdicts, "headline": said})


@dataclass(frozen=True)
class Drawn:
    """A claim as the page tells it: its texts, its panels with the key of each, or of all where it is one."""

    told: Mapping[str, object]
    sign: str
    mood: str
    panels: tuple[tuple[Panel, Key], ...]
    key: Key
    explained: tuple[Explanation, ...]


def content_of(folder: RunFolder) -> Content:
    """A section per claim that has something to draw, and the page of the paper."""
    run, (paper, found), made = folder.run, claims_of(folder), list[Section]()
    for each in found:
        title, name = each.claim.title, each.claim.name
        made += section(name, title, f"{title}: {each.verdict.word}", _panels(each), run.measures)
    return Content(made, partial(paper_page, run, paper, found, folder.facts()))


def paper_page(
    run: Run, paper: Paper, found: Sequence[Judged], facts: Mapping[str, Mapping[str, object]]
) -> str:
    """The text of `report.html`, from the claims that were judged."""
    from isoscope.show.page.markup import coded, rendered  # the terminal needs no templates

    drawn = [_drawn(each, run, facts.get(each.claim.name, {}).get("notes", [])) for each in found]
    colours = [pair for one in drawn for _, key in one.panels for pair, _ in key.values()]
    absent = [(name, coded(why)) for name, why in paper.absent.items()]
    values = {"citation": paper.citation, "headline": headline(found), "claims": drawn, "absent": absent}
    return rendered("paper.html", run, facts, colours, {**values, "dashes": _DASHES}, _SHOWN_ELSEWHERE)


def _panels(each: Judged) -> list[Panel]:
    shown = prepared([chart for chart in each.charts() if chart.filled])
    return [Panel((), chart.title, chart.remark, chart) for chart in shown]


def _drawn(each: Judged, run: Run, noted: object) -> Drawn:
    panels = _panels(each)
    keys = [{one.name: (one.colour or SOFT, one.dash) for one in panel.chart.series} for panel in panels]
    several = [key for key in keys if len(key) > 1]
    largest = max(several, key=len, default={})
    shared = largest if len(several) > 1 and all(key.items() <= largest.items() for key in several) else {}
    lost = each.rows[each.rows["measure"] == FAILED]
    places = zip(lost["model"], lost["revision"], lost["note"], strict=True)
    reasons = [f"{called(model, revision)}: {why}" for model, revision, why in places]
    remarks = list(dict.fromkeys([*map(str, noted if isinstance(noted, list) else []), *reasons]))
    told = {**vars(each.claim), **vars(each.verdict), "word": each.verdict.word, "notes": remarks}
    explained, (sign, mood, _) = explanations(each.claim.measures, run.measures), _SIGNS[each.verdict.held]
    return Drawn(told, sign, mood, tuple(zip(panels, keys, strict=True)), shared, explained)
