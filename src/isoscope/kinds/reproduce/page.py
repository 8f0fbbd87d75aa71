"""The page of a reproduced paper: its claims with their verdicts on top, then a section a claim.

The page shows the verdicts and figures of a paper; rows stay in their files. A verdict has a word and a sign
(✓, ✗, ?), so that it does not depend on colour. A chart without a single number is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from isoscope.kinds.reproduce.screen import claims_of
from isoscope.papers.claims import called
from isoscope.papers.paper import Judged, headline
from isoscope.results.run import Run
from isoscope.results.store import RunFolder
from isoscope.results.trajectory import FAILED
from isoscope.show.charts import Chart, prepared
from isoscope.show.colours import SOFT, Pair
from isoscope.show.figures.panels import Panel
from isoscope.show.measures import Family
from isoscope.show.page.markup import coded, rendered
from isoscope.show.page.section import Explanation, Section, explanations

_SIGNS = {True: ("✓", "held"), False: ("✗", "turned"), None: ("?", "open")}
_DASHES = {"solid": "", "dash": "5 3", "dot": "1.5 2.5"}


@dataclass(frozen=True)
class ClaimTold:
    """A claim as the page tells it; `notes` are remarks and the reasons of what could not be measured."""

    name: str
    title: str
    expected: str
    held: bool | None
    word: str
    said: str
    method: str
    details: str = ""
    reconstructed: str = ""
    charts: Sequence[Chart] = ()
    measures: tuple[str, ...] = ()
    notes: Sequence[str] = ()


Key = dict[str, tuple[Pair, str]]
"""The colour and the dash of each series, by name."""


@dataclass(frozen=True)
class Drawn:
    """The panels of a claim, with the key of each, or of all where they have the same one."""

    told: ClaimTold
    panels: tuple[tuple[Panel, Key], ...]
    key: Key
    explained: tuple[Explanation, ...]

    @property
    def sign(self) -> str:
        """A sign of the verdict, beside its word."""
        return _SIGNS[self.told.held][0]

    @property
    def mood(self) -> str:
        """What the style calls it."""
        return _SIGNS[self.told.held][1]


def page_of(folder: RunFolder) -> str:
    """The text of `report.html`, from the rows that are in the folder now."""
    paper, found = claims_of(folder)
    facts = folder.facts()
    return paper_page(folder.run, paper.citation, headline(found), _told(found, facts), paper.absent, facts)


def sections_of(folder: RunFolder) -> list[Section]:
    """A section per claim that has something to draw."""
    return [
        Section(
            each.claim.name, Family(each.claim.title, f"{each.claim.title}: {each.verdict.word}", ()), panels
        )
        for each in claims_of(folder)[1]
        if (panels := _panels(each.charts()))
    ]


def _panels(charts: Sequence[Chart]) -> list[Panel]:
    shown = prepared([chart for chart in charts if chart.filled])
    return [Panel((), chart.title, chart.remark, chart) for chart in shown]


def paper_page(
    run: Run,
    citation: str,
    said: str,
    claims: Sequence[ClaimTold],
    absent: Mapping[str, str],
    facts: Mapping[str, Mapping[str, object]],
) -> str:
    """The text of `report.html`; `absent` are experiments of the paper that are not there, and why."""
    drawn = [_drawn(each, run) for each in claims]
    colours = [pair for one in drawn for _, key in one.panels for pair, _ in key.values()]
    values = {
        "citation": citation,
        "headline": said,
        "claims": drawn,
        "absent": [(name, coded(why)) for name, why in absent.items()],
        "dashes": _DASHES,
    }
    without = ("notes", "title", "expected", "said", "verdict")
    return rendered("paper.html", run, facts, colours, values, without)


def _drawn(told: ClaimTold, run: Run) -> Drawn:
    panels = _panels(told.charts)
    keys = [{one.name: (one.colour or SOFT, one.dash) for one in panel.chart.series} for panel in panels]
    several = [key for key in keys if len(key) > 1]
    largest = max(several, key=len, default={})
    shared = largest if len(several) > 1 and all(key.items() <= largest.items() for key in several) else {}
    return Drawn(
        told, tuple(zip(panels, keys, strict=True)), shared, explanations(told.measures, run.measures)
    )


def _told(found: Sequence[Judged], facts: Mapping[str, Mapping[str, object]]) -> list[ClaimTold]:
    """The claims as the page shows them."""
    return [
        ClaimTold(
            name=each.claim.name,
            title=each.claim.title,
            expected=each.claim.expected,
            held=each.verdict.held,
            word=each.verdict.word,
            said=each.verdict.said,
            details=each.verdict.details,
            method=each.claim.method,
            reconstructed=each.claim.reconstructed,
            charts=tuple(each.charts()),
            measures=each.claim.measures,
            notes=_notes(each, facts.get(each.claim.name, {}).get("notes", [])),
        )
        for each in found
    ]


def _notes(each: Judged, noted: object) -> list[str]:
    """Remarks of the experiment, and the reasons of what could not be measured."""
    lost = each.rows[each.rows["measure"] == FAILED]
    places = zip(lost["model"], lost["revision"], lost["note"], strict=True)
    reasons = [f"{called(model, revision)}: {why}" for model, revision, why in places]
    return list(dict.fromkeys([*map(str, noted if isinstance(noted, list) else []), *reasons]))
