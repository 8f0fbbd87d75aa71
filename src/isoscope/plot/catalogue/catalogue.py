"""The figures that rows and points offer, of a run of no special kind and of a sweep.

What has steps is drawn along them, what has heads as maps, and so on. Each section of the page has a figure,
and each measure has one by its own name. `isoscope.kinds.table` says which figures a kind of run has.
"""

from __future__ import annotations

from collections.abc import Mapping

from isoscope.kinds.sweep.rows import changes_of, read_sweep
from isoscope.plot.catalogue.rows import of_rows
from isoscope.results.store import RunFolder
from isoscope.show.draw.matplotlib.sheet import Offered
from isoscope.show.page.alarms import watch
from isoscope.show.page.training import explained
from isoscope.show.say.words import LIVE


def of_measured(folder: RunFolder) -> list[Offered]:
    """The figures of a run of no special kind: what has steps is drawn along them."""
    rows, facts, run = folder.frame(), folder.facts(), folder.run
    own = rows[rows["revision"].fillna("") != LIVE]
    seen = watch(own, facts) if own["model"].nunique() == 1 else None
    alarms = [mark.step for mark in seen.marks if mark.new] if seen else []
    told = explained(run.measures, facts)
    return of_rows(rows, folder.points(), told, length=_length(run.question), alarms=alarms)


def of_sweep(folder: RunFolder) -> list[Offered]:
    """The figures of a sweep: lines along the steps with their changes marked."""
    read = read_sweep(folder)
    told = explained(folder.run.measures, read.facts)
    changes, length = changes_of(read.between), _length(folder.run.question)
    return of_rows(read.rows, read.points, told, length=length, changes=changes)


def _length(question: Mapping[str, object]) -> int | None:
    """The length of the sequences that regimes were told for, where it was asked."""
    asked = question.get("length")
    return asked if isinstance(asked, int) else None
