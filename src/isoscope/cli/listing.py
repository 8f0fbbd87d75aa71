"""`isoscope list`: what there is."""

from __future__ import annotations

from typing import Annotated

import typer

WHAT = ("measures", "data")


def list_(what: Annotated[str, typer.Argument(help="measures or data")] = "measures") -> None:
    """List the measures (formula, what each says, how it misleads, null, interval) or the kinds of data."""
    from isoscope.cli import screen
    from isoscope.data.source import KINDS
    from isoscope.errors import unknown_name
    from isoscope.measures.on_data import EXPLANATIONS
    from isoscope.measures.table import MEASURES

    if what not in WHAT:
        raise unknown_name("list", what, WHAT)
    if what == "data":
        for address, takes, is_ in KINDS:
            screen.say(f"{address:<20} for {takes:<7} {is_}")
        return
    explained = {measure.name: measure.explanation() for measure in MEASURES} | dict(EXPLANATIONS)
    for name, told in explained.items():
        screen.say(f"{name}: {told['title']}")
        for word in ("formula", "says", "misleads", "range", "null", "interval", "source"):
            screen.say(f"    {word:<9} {told[word]}")
        screen.say("")
