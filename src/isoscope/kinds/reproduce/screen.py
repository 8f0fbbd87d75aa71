"""The terminal output of a reproduction: a table of claims with their verdicts."""

from __future__ import annotations

from isoscope.kinds.screen import WIDTH, Cell, Screen, Table, headed
from isoscope.papers.paper import Judged, Paper, headline, judged
from isoscope.papers.table import paper_of
from isoscope.results.store import RunFolder

_COLOURS = {True: "green", False: "red", None: "yellow"}
_COLUMNS = headed(("claim", "expected", "found", "verdict"), folds=True)


def claims_of(folder: RunFolder) -> tuple[Paper, list[Judged]]:
    """The paper, and every claim of it that the folder has."""
    paper = paper_of(str(folder.run.question["paper"]))
    return paper, judged(paper, folder)


def screen_of(folder: RunFolder, width: int = WIDTH) -> Screen:
    """The table of claims and how many held."""
    _, found = claims_of(folder)
    lines, said = tuple(map(_line, found)), headline(found)
    table = Table(_COLUMNS, lines, rules=frozenset(range(1, len(found))))
    return Screen((table, said), json={"verdicts": list(map(_verdict, found)), "headline": said})


def _line(each: Judged) -> tuple[str | Cell, ...]:
    verdict = Cell(each.verdict.word, _COLOURS[each.verdict.held])
    return each.claim.title, each.claim.expected, each.verdict.said, verdict


def _verdict(each: Judged) -> dict[str, object]:
    return {
        "claim": each.claim.name,
        "expected": each.claim.expected,
        "verdict": each.verdict.word,
        "found": f"{each.verdict.said} {each.verdict.details}".strip(),
    }
