"""The page of a run of no special kind: a section per family of measures."""

from __future__ import annotations

from isoscope.results.store import RunFolder
from isoscope.show.page.page import page


def page_of(folder: RunFolder) -> str:
    """The text of `report.html`, from the rows that are in the folder now."""
    return page(folder.run, folder.frame(), folder.facts(), folder.points())
