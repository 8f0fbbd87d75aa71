"""`isoscope report`: the page of a run, made anew from its rows."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

_SHOWN = ("contrast", "block", "advise", "impact", "reproduce")  # kinds with a screen of their own


def report(run: Annotated[Path, typer.Argument(help="A run folder.")]) -> None:
    """Write the page of a run again, from its rows alone."""
    from isoscope.cli.screen.finish import finish
    from isoscope.results.store import read_run

    folder = read_run(run)
    kind = folder.run.kind
    if kind in _SHOWN:
        getattr(import_module(f"isoscope.cli.screen.{kind}"), f"finish_{kind}")(folder)
    else:
        finish(folder, json=False)
