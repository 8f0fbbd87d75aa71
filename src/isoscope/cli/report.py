"""`isoscope report`: the page of a run, made anew from its rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(run: Annotated[Path, typer.Argument(help="A run folder.")]) -> None:
    """Write the page of a run again, from its rows alone."""
    from isoscope.cli.finish import finish
    from isoscope.results.store import read_run

    folder = read_run(run)
    if folder.run.kind == "contrast":
        from isoscope.cli.screen_contrast import finish_contrast

        finish_contrast(folder)
        return
    if folder.run.kind == "block":
        from isoscope.cli.screen_block import finish_block

        finish_block(folder)
        return
    if folder.run.kind == "advise":
        from isoscope.cli.screen_advise import finish_advise

        finish_advise(folder)
        return
    if folder.run.kind == "reproduce":
        from isoscope.cli.screen_reproduce import finish_reproduce

        finish_reproduce(folder)
        return
    finish(folder, json=False)
