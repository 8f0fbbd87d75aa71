"""The end of every verb that makes a run: rows kept, tables and sentences printed, the page written.

Rows are kept before anything is printed, so a closed pipe loses none; a full disk loses none either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pandas as pd

from isoscope.cli.screen import terminal
from isoscope.kinds.measure.shown import measured
from isoscope.kinds.report import screen_of, write
from isoscope.kinds.screen import Screen, notes_of
from isoscope.results.store import NotKeptError, RunFolder


def finish(folder: RunFolder, *, json: bool) -> None:
    """Show what the folder holds, and write its page."""
    with terminal.bar("writing the page"):
        screen = screen_of(folder, terminal.screen_width())
        written = write(folder)
    terminal.warn(written.notes)
    page, files = str(written.page or ""), list(map(str, written.figures))
    beside: dict[str, object] = {"run": folder.run.id, "folder": str(folder.path), "page": page}
    show(screen, folder.frame, json=json, beside=beside | ({"figures": files} if files else {}))
    figures = str(written.figures[0].parent) if written.figures else ""
    for name, where in (("page", page), ("figures", figures)):
        if where and not json:
            terminal.say(f"{name}: {where}")


def rescue(lost: NotKeptError, *, json: bool) -> None:
    """Show rows that could not be kept, before the sentence that says why."""
    run = str(lost.rows["run"].iloc[0]) if len(lost.rows) else ""
    show_rows(lost.rows, notes_of({"": lost.facts}), json=json, run=run)


def show_rows(rows: pd.DataFrame, notes: Iterable[str], *, json: bool, run: str) -> None:
    """Show rows that are in no folder."""
    screen = measured(rows, notes, terminal.screen_width())
    show(screen, lambda: rows, json=json, beside={"run": run})


def show(
    screen: Screen, rows: Callable[[], pd.DataFrame], *, json: bool, beside: Mapping[str, object]
) -> None:
    """Print notes, then tables and sentences or one JSON object with the rows."""
    terminal.warn(screen.notes)
    if json:
        terminal.show_json({"notes": screen.notes, **screen.json, **beside, "rows": rows()})
        return
    for part in screen.shown:
        terminal.show(part)
