"""The terminal: the only place that renders and prints what a run shows, remarks and progress.

Tables and sentences go to stdout, everything else to stderr. The bar keeps quiet when that is not a terminal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

import pandas as pd
from rich import box, table
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from isoscope.kinds.screen import WIDTH, Cell, Table
from isoscope.run.telling import Telling


def show(part: Table | str, *, stderr: bool = False) -> None:
    """Print a table or a sentence."""
    if isinstance(part, str):
        say(part, stderr=stderr)
    else:
        Console(width=screen_width(stderr=stderr), stderr=stderr).print(rendered(part))


def rendered(given: Table) -> table.Table:
    """A table as rich draws it; all text is shown as it is, without markup."""
    made = table.Table(
        title=Text(given.title, style="table.title") if given.title else None,
        title_justify="left",
        caption=Text(given.caption, style="table.caption") if given.caption else None,
        caption_justify="left",
        box=box.HEAVY_HEAD if given.boxed else box.SIMPLE_HEAD,
        show_edge=given.boxed,
    )
    for column in given.columns:
        side: Literal["left", "right"] = "right" if column.right else "left"
        heading, stiff = Text(column.heading), not column.folds
        made.add_column(heading, justify=side, no_wrap=stiff, min_width=column.least)
    for at, line in enumerate(given.lines):
        if at in given.rules:
            made.add_section()
        made.add_row(*(Text(c.text, c.colour) if isinstance(c, Cell) else Text(c) for c in line))
    return made


def screen_width(*, stderr: bool = False) -> int:
    """Columns of the terminal; `WIDTH` where the output is not a terminal."""
    console = Console(stderr=stderr)
    return console.width if console.is_terminal else WIDTH


def show_json(told: Mapping[str, object]) -> None:
    """Print one JSON object; a table is a list of its lines, in which a missing number is null."""

    def plain(table: pd.DataFrame) -> object:
        return json.loads(table.to_json(orient="records", double_precision=15))

    print(json.dumps(told, indent=1, default=plain))  # noqa: T201


def warn(notes: Iterable[str]) -> None:
    """Print remarks, one a line, to stderr."""
    console = Console(stderr=True)
    for note in notes:
        console.print(f"note: {note}", style="yellow", markup=False, highlight=False)


def say(text: str, *, stderr: bool = False, style: str | None = None) -> None:
    """Print a line as it is."""
    Console(stderr=stderr).print(text, style=style, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def bar(what: str) -> Iterator[Callable[..., None]]:
    """A progress bar on stderr; gives the function that moves it: (done, total, what is in work)."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task(what, total=None)

        def move(done: int, total: int | None, now: str = "") -> None:
            named = f"{what}: {now}" if now else what
            progress.update(task, completed=done, total=total, description=named)

        yield move


TELLING = Telling(bar, lambda note: warn([note]))
"""Progress and notes of a long call, shown in the terminal."""
