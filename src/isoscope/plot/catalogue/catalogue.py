"""Which figures a run has, each with one line on it, whatever kind of run it is.

A contrast, an untrained block and a paper's claims have figures of their own; everything else is told by its
rows and points: what has steps is drawn along them, what has heads as maps, and so on. Each section of the
page has a figure, and each measure has one by its own name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from isoscope.kinds.sweep.rows import changes_of, read_sweep
from isoscope.plot.catalogue.rows import of_rows
from isoscope.plot.catalogue.runs import of_block, of_claims, of_contrast
from isoscope.results.store import RunFolder
from isoscope.show.draw.matplotlib.sheet import Offered
from isoscope.show.page.alarms import watch
from isoscope.show.page.training import explained
from isoscope.show.say.words import LIVE

__all__ = ["Offered", "figures"]


def figures(folder: RunFolder) -> dict[str, Offered]:
    """The figures of a run folder by name, those that matter most first; `offered.draw()` draws one.

    What `read_run` returned is what it takes.
    """
    found: dict[str, Offered] = {}
    for one in _MADE.get(folder.run.kind, _plain)(folder):
        found.setdefault(one.name, one)
    return found


def _plain(folder: RunFolder) -> list[Offered]:
    rows, facts, run = folder.frame(), folder.facts(), folder.run
    own = rows[rows["revision"].fillna("") != LIVE]
    seen = watch(own, facts) if own["model"].nunique() == 1 else None
    alarms = [mark.step for mark in seen.marks if mark.new] if seen else []
    told = explained(run.measures, facts)
    return of_rows(rows, folder.points(), told, length=_length(run.question), alarms=alarms)


def _sweep(folder: RunFolder) -> list[Offered]:
    read = read_sweep(folder)
    told = explained(folder.run.measures, read.facts)
    changes, length = changes_of(read.between), _length(folder.run.question)
    return of_rows(read.rows, read.points, told, length=length, changes=changes)


def _length(question: Mapping[str, object]) -> int | None:
    """The length of the sequences that regimes were told for, where it was asked."""
    asked = question.get("length")
    return asked if isinstance(asked, int) else None


_MADE: dict[str, Callable[[RunFolder], list[Offered]]] = {
    "sweep": _sweep,
    "contrast": of_contrast,
    "block": of_block,
    "reproduce": of_claims,
}
