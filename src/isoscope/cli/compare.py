"""`isoscope compare`: runs and models side by side."""

from __future__ import annotations

from typing import Annotated

import typer

from isoscope.cli.options import Json, Out


def compare(
    what: Annotated[
        list[str], typer.Argument(help="Run folders, or models, which are measured on embedded data.")
    ],
    limit: Annotated[int, typer.Option(min=1, help="For models: at most so many sequences.")] = 64,
    out: Out = None,
    json: Json = False,
) -> None:
    """Put runs and models side by side, and see whether anisotropy follows drift in each and over all."""
    from isoscope.cli.screen.finish import finish
    from isoscope.cli.screen.terminal import TELLING
    from isoscope.run.compare import compare as compared

    finish(compared(what, limit=limit, out=out, telling=TELLING), json=json)
