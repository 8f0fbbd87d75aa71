"""The terminal output of a sweep: tables of sites at a few of its steps, and a few of its notes."""

from __future__ import annotations

from isoscope.kinds.measure import screen as measure
from isoscope.kinds.screen import WIDTH, Screen, notes_of
from isoscope.results.store import RunFolder
from isoscope.results.trajectory import thinned, trajectory

_MOST_NOTES = 6  # the notes of hundreds of checkpoints would bury the table
_MOST_STEPS = 24  # the page has more, and the folder has all


def screen_of(folder: RunFolder, width: int = WIDTH) -> Screen:
    """Tables of some steps and the headline; `--json` prints all notes."""
    of = trajectory(folder)
    if not of.units:
        return measure.screen_of(folder, width)
    notes = notes_of(of.facts)
    more = len(notes) - _MOST_NOTES
    few = (*notes[:_MOST_NOTES], f"and {more} more notes, which the page has") if more > 0 else notes
    steps = thinned(of.steps, _MOST_STEPS)
    shown = measure.measured(of.rows(heads=False, only=steps, influence=steps), (), width).shown
    return Screen(shown, few, {"notes": notes})
