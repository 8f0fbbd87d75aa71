"""`isoscope list`: what there is."""

from __future__ import annotations

from typing import Annotated

import typer

WHAT = ("measures",)


def list_(what: Annotated[str, typer.Argument(help="measures")] = "measures") -> None:
    """List the measures: formula, what each says and how it misleads, range, null, interval, source."""
    from isoscope.cli import screen
    from isoscope.errors import unknown_name
    from isoscope.measures.table import MEASURES

    if what not in WHAT:
        raise unknown_name("list", what, WHAT)
    for measure in MEASURES:
        told = measure.explanation()
        screen.say(f"{measure.name}: {measure.title}")
        for word in ("formula", "says", "misleads", "range", "null", "interval", "source"):
            screen.say(f"    {word:<9} {told[word]}")
        screen.say("")
