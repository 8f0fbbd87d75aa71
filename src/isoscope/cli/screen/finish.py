"""What every measuring verb ends with: the rows kept, the table, the words, the page and its path.

Rows are kept before anything is printed, so a closed pipe loses none; where they cannot be kept they
are printed all the same, so a full disk loses none either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from isoscope.cli.pages import write_page
from isoscope.cli.screen import terminal as screen
from isoscope.cli.screen.weights import show_weights
from isoscope.errors import IsoscopeError
from isoscope.results.row import Row, frame
from isoscope.results.store import RunFolder
from isoscope.results.trajectory import thinned, trajectory
from isoscope.show.say.words import headline

_MOST = 6  # sites that a note names, and notes of a sweep
_MOST_STEPS = 24  # of a sweep that are shown; the page has more, and the folder has all


def finish(
    folder: RunFolder,
    *,
    json: bool,
    unit: str | None = None,
    rows: Sequence[Row] = (),
    facts: Mapping[str, object] | None = None,
    points: pd.DataFrame | None = None,
) -> None:
    """Keep rows and points, show the rows (with no unit, those that are there), and write the page."""
    if unit is not None:
        try:
            folder.write(unit, rows, facts or {}, points)
        except IsoscopeError:
            show(frame(rows), _notes({unit: facts or {}}), json=json, run=folder.run.id)
            raise
    table, known = _read(folder, json=json)
    if table.empty:
        raise IsoscopeError(f"{folder.path} holds no rows; measure into it first.")
    with screen.bar("writing the page"):
        page = write_page(folder)
    notes, many = _notes(known), folder.run.kind == "sweep" and not json
    if many and len(notes) > _MOST:  # of hundreds of checkpoints they would bury the table
        notes[_MOST:] = [f"and {len(notes) - _MOST} more notes, which the page has"]
    beside = {"run": folder.run.id, "folder": str(folder.path), "page": page}
    show(table, notes, json=json, undefined=not many, **beside)
    if page and not json:
        screen.say(f"page: {page}")


def _read(folder: RunFolder, *, json: bool) -> tuple[pd.DataFrame, dict[str, dict[str, object]]]:
    """The rows that are shown, and what is known of each unit; of a sweep, sites at a few of its steps."""
    of = trajectory(folder) if folder.run.kind == "sweep" else None
    if of is None or not of.units:
        return folder.frame(), folder.facts()
    return folder.frame() if json else of.rows(heads=False, only=thinned(of.steps, _MOST_STEPS)), of.facts


def show(
    table: pd.DataFrame, notes: list[str], *, json: bool, undefined: bool = True, **beside: object
) -> None:
    """The table and the words, or all of it as JSON; remarks go to stderr, undefined readings too."""
    notes = [*notes, *(_undefined(table) if undefined else [])]
    screen.warn(notes)
    if json:
        screen.show_json(table, notes=notes, **beside)
    else:
        rest = show_weights(table)
        if len(rest):
            screen.show(rest)
        screen.say(headline(table))


def _undefined(table: pd.DataFrame) -> list[str]:
    """Which measures are undefined and why, and at which sites and heads where they are read at others."""
    lacking = table.value.isna() & (table.note != "")
    told: dict[tuple[str, str], list[str]] = {}
    for (why, measure), part in table[lacking].groupby(["note", "measure"], sort=False):
        everywhere = lacking[table.measure == measure].all()
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


def _notes(facts: Mapping[str, Mapping[str, object]]) -> list[str]:
    told = [note for known in facts.values() for note in known.get("notes", [])]  # type: ignore[attr-defined]
    return list(dict.fromkeys(map(str, told)))
