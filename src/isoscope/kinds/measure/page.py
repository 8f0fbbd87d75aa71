"""The page of a run of no special kind: a section per family of measures."""

from __future__ import annotations

from functools import partial

from isoscope.results.store import RunFolder
from isoscope.show.page.content import Content
from isoscope.show.page.page import page, sections_of
from isoscope.show.page.training import training_of


def content_of(folder: RunFolder) -> Content:
    """The sections of the rows that are in the folder now, and their page."""
    run, rows, facts, points = folder.run, folder.frame(), folder.facts(), folder.points()
    sections = sections_of(run, rows, points, training_of(run, rows, facts))
    return Content(sections, partial(page, run, rows, facts, points, sections=sections))
