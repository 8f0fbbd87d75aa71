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
    lines, verdicts, said = [], [], headline(found)
    for claim, verdict in ((each.claim, each.verdict) for each in found):
        word = Cell(verdict.word, _COLOURS[verdict.held])
        lines.append((claim.title, claim.expected, verdict.said, word))
        told = {"claim": claim.name, "expected": claim.expected, "verdict": verdict.word}
        verdicts.append({**told, "found": f"{verdict.said} {verdict.details}".strip()})
    table = Table(_COLUMNS, tuple(lines), rules=frozenset(range(1, len(found))))
    return Screen((table, said), json={"verdicts": verdicts, "headline": said})
