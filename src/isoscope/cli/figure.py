"""`isoscope figure`: a figure of a run as a file for a paper or a slide; without a name, which there are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from isoscope.show.draw.matplotlib.sheet import Offered


def figure(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    name: Annotated[
        str | None, typer.Argument(help="A figure, or a measure. [default: list what this run has]")
    ] = None,
    format_: Annotated[
        str | None, typer.Option("--format", help="pdf, svg or png. [default: as --out ends, else pdf]")
    ] = None,
    width: Annotated[
        str, typer.Option(help="single (3.3 inches, a column) or double (6.9, a page).")
    ] = "single",
    style: Annotated[str, typer.Option(help="paper, or slide: larger type and lines.")] = "paper",
    out: Annotated[
        Path | None, typer.Option(help="The file. [default: figures/NAME.FORMAT in the run folder]")
    ] = None,
) -> None:
    """Draw a figure of a run, with intervals and nulls; the same rows give the same bytes."""
    from isoscope.cli.screen import terminal as screen
    from isoscope.errors import IsoscopeError, unknown_name
    from isoscope.kinds.report import figures
    from isoscope.results.store import read_run, write_whole
    from isoscope.show.draw.matplotlib.style import KINDS, STYLES, WIDTHS

    folder = read_run(run)
    suffix = (out.suffix[1:].lower() if out else "") or "pdf"
    kind = format_ or suffix
    for what, asked, known in (("format", kind, KINDS), ("width", width, WIDTHS), ("style", style, STYLES)):
        if asked not in known:
            raise unknown_name(what, asked, known)
    there = figures(folder)
    if not there:
        raise IsoscopeError(f"{folder.path} has no figure: none of its rows has a value that could be drawn.")
    if name is None:
        _show(there)
        return
    if name not in there:
        raise unknown_name(f"figure of {folder.path}", name, _near(name, there))
    body = there[name].bytes(kind, width, style)
    file = out or folder.path / "figures" / f"{re.sub(r'[^A-Za-z0-9_-]+', '-', name)}.{kind}"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as reason:
        raise IsoscopeError(
            f"cannot write to {file.parent}: {reason.strerror or reason}; give another --out."
        ) from reason
    write_whole(file, body)
    screen.say(str(file))


def _show(there: Mapping[str, Offered]) -> None:
    from isoscope.cli.screen import terminal as screen

    longest = max(len(name) for name, one in there.items() if not one.alone or len(there) == 1)
    for name, one in there.items():
        if not one.alone:
            screen.say(f"{name:<{longest}}  {one.says}")
    alone = [name for name, one in there.items() if one.alone]
    if alone:
        screen.say(f"\nor a measure by its name: {', '.join(alone)}")


def _near(name: str, there: Mapping[str, Offered]) -> list[str]:
    """The figures, and of the measures those that were likely meant: all of them would bury the figures."""
    from difflib import get_close_matches

    alone = [known for known, one in there.items() if one.alone]
    return [*(known for known, one in there.items() if not one.alone), *get_close_matches(name, alone, n=3)]
