"""The claims of a reproduced paper with their verdicts, read from a run folder."""

from __future__ import annotations

from isoscope.errors import IsoscopeError
from isoscope.papers.paper import Judged, Paper, judged
from isoscope.papers.table import paper_of
from isoscope.results.store import RunFolder


def claims_of(folder: RunFolder) -> tuple[Paper, list[Judged]]:
    """The paper, and every claim of it that the folder has; without any, an error."""
    paper = paper_of(str(folder.run.question["paper"]))
    found = judged(paper, folder)
    if not found:
        raise IsoscopeError(
            f"{folder.path} holds no claim yet; `isoscope reproduce {paper.name}` makes them."
        )
    return paper, found
