"""`isoscope list`: what there is."""

from __future__ import annotations

from typing import Annotated

import typer

WHAT = ("measures",)


def list_(what: Annotated[str, typer.Argument(help="measures")] = "measures") -> None:
    """List the measures: what each says, its range and what it is for an isotropic cloud."""
    from rich.table import Table

    from isoscope.cli import screen
    from isoscope.errors import unknown_name
    from isoscope.measures.table import MEASURES

    if what not in WHAT:
        raise unknown_name("list", what, WHAT)
    table = Table(show_lines=True)
    table.add_column("measure", no_wrap=True)
    for head in ("formula", "what it says", "isotropic", "interval"):
        table.add_column(head)
    for measure in MEASURES:
        table.add_row(measure.name, measure.formula, measure.says, measure.null, measure.interval)
    screen.show_table(table)
