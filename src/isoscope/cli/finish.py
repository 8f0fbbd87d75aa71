"""What every measuring verb ends with: the table, the words, the rows kept, the page and its path.

The table is printed before anything is written, so a full disk loses no number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from isoscope.cli import screen
from isoscope.errors import IsoscopeError
from isoscope.report.words import headline
from isoscope.results.schema import Row, frame
from isoscope.results.store import RunFolder


def finish(
    folder: RunFolder,
    *,
    json: bool,
    unit: str | None = None,
    rows: Sequence[Row] = (),
    facts: Mapping[str, object] | None = None,
) -> None:
    """Show the rows (or, with no unit, those that are there), keep them, and write the page."""
    table = frame(rows) if unit is not None else folder.frame()
    notes = _notes({unit: facts or {}} if unit is not None else folder.facts())
    if not json:
        screen.show(table)
        screen.say(headline(table))
    screen.warn(notes)
    if unit is not None:
        folder.write(unit, rows, facts or {})
    page = write_page(folder)
    if json:
        screen.show_json(table, run=folder.run.id, folder=str(folder.path), page=page, notes=notes)
    elif page:
        screen.say(f"page: {page}")


def write_page(folder: RunFolder) -> str:
    """Write the page and give its path; without plotly, say so and give nothing."""
    try:
        from isoscope.report.page import page
    except ImportError as missing:
        screen.warn([f"no page was written: {missing.name} is not installed"])
        return ""
    rows = folder.frame()
    if rows.empty:
        raise IsoscopeError(f"{folder.path} holds no rows; measure into it first.")
    return str(folder.write_page(page(folder.run, rows, folder.facts())))


def _notes(facts: Mapping[str, Mapping[str, object]]) -> list[str]:
    told = [note for known in facts.values() for note in known.get("notes", [])]  # type: ignore[attr-defined]
    return list(dict.fromkeys(map(str, told)))
