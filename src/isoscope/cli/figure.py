"""`isoscope figure`: a figure of a run as a file for a paper or a slide; without a name, which there are."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from isoscope.cli.options import verb

HELP = {
    "name": "A figure, or a measure. [default: list what this run has]",
    "kind": "pdf, svg or png. [default: as --out ends, else pdf]",
    "width": "single (3.3 inches, a column) or double (6.9, a page).",
    "style": "paper, or slide: larger type and lines.",
    "out": "The file, or a folder for it. [default: figures/NAME.FORMAT in the run folder]",
}


@verb(HELP)
def figure(
    run: Path, name: Annotated[str | None, Argument()] = None,
    kind: Annotated[str | None, Option("--format")] = None, width: str = "single", style: str = "paper",
    out: Path | None = None,
) -> None:  # fmt: skip
    """Draw a figure of a run, with intervals and nulls; the same rows give the same bytes."""
    from isoscope.cli.screen import terminal as screen
    from isoscope.errors import IsoscopeError, unknown_name
    from isoscope.kinds.report import figures
    from isoscope.results.store import read_run, write_file

    folder = read_run(run)
    kind = kind or (out.suffix[1:].lower() if out else "") or "pdf"
    there = figures(folder)
    if not there:
        raise IsoscopeError(f"{folder.path} has no figure: none of its rows has a value that could be drawn.")
    alone = [known for known, one in there.items() if one.alone]
    others = {known: one.says for known, one in there.items() if not one.alone}
    if name is None:
        longest = max(map(len, others or there))
        for known, says in others.items():
            screen.say(f"{known:<{longest}}  {says}")
        if alone:
            screen.say(f"\nor a measure by its name: {', '.join(alone)}")
        return
    if name not in there:  # of the measures those that were likely meant: all of them would bury the figures
        likely = get_close_matches(name, alone, n=3)
        raise unknown_name(f"figure of {folder.path}", name, [*others, *likely])
    body = there[name].bytes(kind, width, style)
    plain = f"{re.sub(r'[^A-Za-z0-9_-]+', '-', name)}.{kind}"
    file = out / plain if out and out.is_dir() else out or folder.path / "figures" / plain
    screen.say(str(write_file(file, body)))
