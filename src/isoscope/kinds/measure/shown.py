"""A run of no special kind on the terminal and on its page: tables, the headline, a section per family."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import pandas as pd

from isoscope.kinds.measure.tables import all_tables
from isoscope.kinds.screen import WIDTH, Screen, notes_of
from isoscope.results.store import RunFolder
from isoscope.show.page.content import Content
from isoscope.show.say.words import headline

_MOST = 6  # sites that a note names


def content_of(folder: RunFolder) -> Content:
    """The sections of the rows that are in the folder now, and their page."""
    from isoscope.show.page.page import page, sections_of
    from isoscope.show.page.training import training_of

    run, rows, facts, points = folder.run, folder.frame(influence=True), folder.facts(), folder.points()
    sections = sections_of(run, rows, points, training_of(run, rows, facts))
    return Content(sections, partial(page, run, rows, facts, points, sections=sections))


def screen_of(folder: RunFolder, width: int = WIDTH) -> Screen:
    """Tables of the rows in the folder, the headline, and notes."""
    return measured(folder.frame(influence=True), notes_of(folder.facts()), width)


def measured(rows: pd.DataFrame, notes: Iterable[str], width: int = WIDTH) -> Screen:
    """Tables of these rows, the headline, and the notes with the readings that are undefined."""
    return Screen((*all_tables(rows, width), headline(rows)), (*notes, *undefined(rows)))


def undefined(rows: pd.DataFrame) -> list[str]:
    """Which measures are undefined and why, and at which sites and heads where they are read at others."""
    lacking = rows.value.isna() & (rows.note != "")
    told: dict[tuple[str, str], list[str]] = {}
    for (why, measure), part in rows[lacking].groupby(["note", "measure"], sort=False):
        everywhere = lacking[rows.measure == measure].all()
        told.setdefault(("" if everywhere else f" at {_places(part)}", str(why)), []).append(str(measure))
    return [f"{', '.join(names)}{where}: undefined, {why}" for (where, why), names in told.items()]


def _places(rows: pd.DataFrame) -> str:
    """The sites of rows, with the heads where the site as a whole is not among them; not more than a few."""
    found = []
    for (kind, layer), part in rows.groupby(["kind", "layer"], dropna=False, sort=False):
        site = str(kind) if part.layer.isna().any() else f"{kind}.{layer}"
        heads = sorted(set(part["head"].dropna().astype(int)))
        whole = part["head"].isna().any() or not heads
        found.append(site if whole else f"{site} (head {', '.join(map(str, heads))})")
    more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return ", ".join(found[:_MOST]) + more
