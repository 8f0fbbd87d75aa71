"""The page of a run of no special kind: a section per family of measures."""

from __future__ import annotations

from isoscope.results.store import RunFolder
from isoscope.show.page import page as rows_page
from isoscope.show.page.printed import Sections


def page_of(folder: RunFolder) -> str:
    """The text of `report.html`, from the rows that are in the folder now."""
    return rows_page.page(folder.run, folder.frame(influence=True), folder.facts(), folder.points())


def sections_of(folder: RunFolder) -> Sections:
    """The sections of the page."""
    rows = folder.frame(influence=True)
    return rows_page.sections_of(folder.run, rows, folder.facts(), folder.points())
